//! What happens around the daemon while it is killed: the disk is full for a while, the clock of the machine is set.

use std::path::{Path, PathBuf};

use crate::data_folder::DataFolder;
use crate::random::Random;

/// Rounds of a hundred that begin with a disk that fills.
const FILLS: u64 = 30;
/// Rounds of a hundred after which a full disk has room again.
const EMPTIES: u64 = 60;
/// Rounds of a hundred in which the clock is set.
const CLOCK_STEPS: u64 = 30;
/// The widest step, in milliseconds: six hours.
const STEP_WITHIN_MS: u64 = 6 * 60 * 60 * 1000;

/// Whether something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weather {
    /// Nothing does.
    Calm,
    /// The disk fills and has room again, and the clock is set forward and back by hours.
    Rough,
}

/// The files by which a daemon is told.
#[derive(Debug)]
pub(crate) struct Around {
    weather: Weather,
    full: PathBuf,
    clock: PathBuf,
    /// Rounds that ended with a full disk.
    pub(crate) full_kills: u32,
    /// Steps of the clock.
    pub(crate) clock_steps: u32,
}

impl Around {
    pub(crate) fn new(weather: Weather, folder: &DataFolder) -> Self {
        let beside = |name: &str| folder.path().join(name);
        Self {
            weather,
            full: beside("test-full"),
            clock: beside("test-clock"),
            full_kills: 0,
            clock_steps: 0,
        }
    }

    /// Variables for the daemon.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let value = |path: &Path| path.display().to_string();
        match self.weather {
            Weather::Calm => Vec::new(),
            Weather::Rough => vec![
                ("RALLY_FAULT_FULL".to_owned(), value(&self.full)),
                ("RALLY_FAULT_CLOCK".to_owned(), value(&self.clock)),
            ],
        }
    }

    /// The next round begins.
    pub(crate) fn change(&mut self, random: &mut Random) -> std::io::Result<()> {
        if self.weather == Weather::Calm {
            return Ok(());
        }
        if self.full.exists() {
            if random.chance(EMPTIES) {
                std::fs::remove_file(&self.full)?;
            }
        } else if random.chance(FILLS) {
            std::fs::write(&self.full, "")?;
        }
        if random.chance(CLOCK_STEPS) {
            // The offset is drawn anew each time, so that steps lead both ways and don't add up.
            let offset = i64::try_from(random.between(0, 2 * STEP_WITHIN_MS)).unwrap_or(0);
            let offset = offset.saturating_sub(i64::try_from(STEP_WITHIN_MS).unwrap_or(0));
            let new = self.clock.with_extension("new");
            std::fs::write(&new, offset.to_string())?;
            std::fs::rename(new, &self.clock)?;
            self.clock_steps += 1;
        }
        Ok(())
    }

    /// A kill has hit.
    pub(crate) fn count(&mut self) {
        self.full_kills += u32::from(self.full.exists());
    }

    /// It clears up, for good.
    pub(crate) fn clear(&self) -> std::io::Result<()> {
        match std::fs::remove_file(&self.full) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
