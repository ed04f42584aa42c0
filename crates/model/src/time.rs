//! Points in time and lengths of time as integer milliseconds.

use serde::{Deserialize, Serialize};

/// Unix time in milliseconds.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// This time plus `millis`, saturating.
    pub fn plus(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// Milliseconds from `earlier` to this time; negative when `earlier` is later.
    pub fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The second it stands in, for people, as in `2026-03-01 09:05:07 UTC`.
    pub fn in_words(self) -> String {
        const DAY_MS: i64 = 86_400_000;
        // Days are counted from 1 March of the year 0, so that a leap day is the last of its year.
        let days = self.0.div_euclid(DAY_MS).saturating_add(719_468);
        let era = days.div_euclid(146_097);
        let day_of_era = days.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        let second = self.0.rem_euclid(DAY_MS) / 1000;
        let (hours, minutes, seconds) = (second / 3600, second / 60 % 60, second % 60);
        format!("{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{seconds:02} UTC")
    }
}

/// How the clock of the wall stands to one that is never set, within one life of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClockAnchor {
    /// Which life of the machine (the boot id of Linux).
    pub boot: String,
    /// Milliseconds from the clock that is never set to the clock of the wall.
    pub offset_ms: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_told_as_the_calendar_has_it() {
        for (ms, words) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (-1, "1969-12-31 23:59:59 UTC"),
            (951_782_399_999, "2000-02-28 23:59:59 UTC"),
            (951_782_400_000, "2000-02-29 00:00:00 UTC"),
            (1_772_355_907_000, "2026-03-01 09:05:07 UTC"),
            (4_107_542_400_000, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(Timestamp(ms).in_words(), words);
        }
        // Nothing that a clock may say is too much for it.
        let _ = (Timestamp(i64::MAX).in_words(), Timestamp(i64::MIN).in_words());
    }
}
