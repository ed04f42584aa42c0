//! Lengths of time as people write them.

use std::str::FromStr;

/// A length of time in whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Milliseconds(pub(crate) i64);

impl FromStr for Milliseconds {
    type Err = String;

    /// A number and a unit, or several of them: `500ms`, `90s`, `10m`, `1h30m`. A number alone is seconds.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut total: i64 = 0;
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(no_length(text));
        }
        while !rest.is_empty() {
            let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
            let (number, tail) = rest.split_at(digits);
            let letters = tail.find(|letter: char| letter.is_ascii_digit()).unwrap_or(tail.len());
            let (unit, next) = tail.split_at(letters);
            let factor = match unit.trim() {
                "ms" => 1,
                "s" => 1_000,
                "" if next.is_empty() && total == 0 => 1_000,
                "m" | "min" => 60_000,
                "h" => 3_600_000,
                _ => return Err(no_length(text)),
            };
            let number: i64 = number.parse().map_err(|_| no_length(text))?;
            let part = number.checked_mul(factor).ok_or_else(|| too_long(text))?;
            total = total.checked_add(part).ok_or_else(|| too_long(text))?;
            rest = next;
        }
        if total == 0 { Err("it must be longer than 0".to_owned()) } else { Ok(Self(total)) }
    }
}

fn no_length(text: &str) -> String {
    format!("`{text}` is no length of time; write `500ms`, `90s`, `10m` or `1h`")
}

fn too_long(text: &str) -> String {
    format!("`{text}` is too long")
}

/// A length of time for people: two units at most.
pub(crate) fn words(milliseconds: i64) -> String {
    let milliseconds = milliseconds.max(0);
    let seconds = milliseconds / 1_000;
    match seconds {
        0 => format!("{milliseconds} ms"),
        1..10 => format!("{}.{} s", seconds, milliseconds % 1_000 / 100),
        10..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read() {
        let read = |text: &str| text.parse::<Milliseconds>().map(|length| length.0);
        for (text, expected) in [
            ("500ms", 500),
            ("90s", 90_000),
            ("10m", 600_000),
            ("1h", 3_600_000),
            ("1h30m", 5_400_000),
            ("45", 45_000),
        ] {
            assert_eq!(read(text), Ok(expected), "{text}");
        }
        for text in ["", "m", "10x", "-5s", "1.5h", "0", "0s", "1h30", "9999999999999999h", "10m!", "ü"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn lengths_are_told() {
        let told: Vec<String> = [-5, 340, 12_999, 61_000, 7_320_000].map(words).to_vec();
        assert_eq!(told, ["0 ms", "340 ms", "12 s", "1 min 01 s", "2 h 02 min"]);
    }
}
