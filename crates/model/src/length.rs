//! Lengths of time as the configuration writes them: minutes or days, decimals allowed.
//!
//! Inside they are whole milliseconds, so that they can be compared and added without rounding. What is negative
//! counts as 0, which switches off whatever the length is for.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! length_type {
    ($(#[$doc:meta])* $name:ident, $unit:literal, $millis:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, schemars::JsonSchema)]
        #[schemars(with = "f64")]
        pub struct $name {
            millis: i64,
        }

        impl $name {
            /// This many whole units.
            pub const fn whole(units: i64) -> Self {
                let units = if units < 0 { 0 } else { units };
                Self { millis: units.saturating_mul($millis) }
            }

            /// This many milliseconds.
            pub const fn from_millis(millis: i64) -> Self {
                Self { millis: if millis < 0 { 0 } else { millis } }
            }

            /// Its length in milliseconds; never negative.
            pub const fn millis(self) -> i64 {
                self.millis
            }

            /// The length, unless it is 0, which switches off what it is for.
            pub const fn unless_off(self) -> Option<i64> {
                if self.millis == 0 { None } else { Some(self.millis) }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serialize_units(self.millis, $millis, serializer)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let millis = deserializer.deserialize_any(Units { unit: $unit, millis: $millis })?;
                Ok(Self::from_millis(millis))
            }
        }
    };
}

length_type!(
    /// A length in minutes.
    Minutes,
    "minutes",
    60_000
);
length_type!(
    /// A length in days of 24 hours.
    Days,
    "days",
    86_400_000
);

/// Whole units are written as integers, so that a value read from `60` is shown as `60`.
fn serialize_units<S: Serializer>(millis: i64, unit: i64, serializer: S) -> Result<S::Ok, S::Error> {
    if millis % unit == 0 {
        return serializer.serialize_i64(millis / unit);
    }
    #[expect(clippy::cast_precision_loss, reason = "a length that long is not told to the millisecond")]
    serializer.serialize_f64(millis as f64 / unit as f64)
}

struct Units {
    unit: &'static str,
    millis: i64,
}

impl Visitor<'_> for Units {
    type Value = i64;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a number of {}; 0 switches it off", self.unit)
    }

    fn visit_i64<E: Error>(self, units: i64) -> Result<i64, E> {
        Ok(units.saturating_mul(self.millis))
    }

    fn visit_u64<E: Error>(self, units: u64) -> Result<i64, E> {
        Ok(i64::try_from(units).unwrap_or(i64::MAX).saturating_mul(self.millis))
    }

    fn visit_f64<E: Error>(self, units: f64) -> Result<i64, E> {
        if !units.is_finite() {
            return Err(E::custom(format!("`{units}` is no number of {}", self.unit)));
        }
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "a cast of a float stops at the bounds of the integer"
        )]
        let millis = (units * self.millis as f64).ceil() as i64;
        Ok(millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minutes(text: &str) -> Result<Minutes, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn whole_and_broken_numbers_are_read() {
        assert_eq!(minutes("60").unwrap().millis(), 3_600_000);
        assert_eq!(minutes("0.01").unwrap().millis(), 600);
        assert_eq!(minutes("-1").unwrap().unless_off(), None);
        assert_eq!(minutes("1e300").unwrap().millis(), i64::MAX);
        assert!(minutes("\"60\"").is_err());
        assert_eq!(serde_json::from_str::<Days>("30").unwrap(), Days::whole(30));
    }

    #[test]
    fn a_length_is_written_as_it_was_read() {
        for text in ["60", "0.5", "0"] {
            assert_eq!(serde_json::to_string(&minutes(text).unwrap()).unwrap(), text);
        }
    }
}
