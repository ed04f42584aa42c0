//! Waiting for what no event tells.

use std::time::{Duration, Instant};

/// Pause between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(4);
/// Pause between two costly ones.
const LOOK_AGAIN_SLOWLY: Duration = Duration::from_millis(60);

/// Looks again and again until something holds, such as a file that another program writes. False when that takes
/// too long.
pub async fn wait_for(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let give_up = Instant::now() + limit;
    loop {
        if holds() {
            return true;
        }
        if Instant::now() >= give_up {
            return false;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// The same for a test without a runtime, with longer pauses: for what takes seconds and is costly to look at.
pub fn wait_until(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let give_up = Instant::now() + limit;
    loop {
        if holds() {
            return true;
        }
        if Instant::now() >= give_up {
            return false;
        }
        std::thread::sleep(LOOK_AGAIN_SLOWLY);
    }
}
