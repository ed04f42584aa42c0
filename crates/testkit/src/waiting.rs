//! Waiting for what no event tells.

use std::time::{Duration, Instant};

/// Pause between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(4);

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
