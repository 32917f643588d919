//! Durations in text: `500ms`, `30s`, `5m`, `1h30m`.
//!
//! The `humantime` crate reads them. It also accepts `1 second` and `2 minutes`, which this dialect refuses
//! with the spelling to use instead.

use core::fmt;
use core::time::Duration;

use serde::Deserializer;
use serde::de::{self, DeserializeSeed, Visitor};

/// A text that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurationError {
    value: String,
    help: String,
}

impl DurationError {
    /// The spelling to use instead.
    #[must_use]
    pub fn help(&self) -> &str {
        &self.help
    }
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a duration", self.value)
    }
}

impl std::error::Error for DurationError {}

/// Reads a duration: a number and a unit (`ns us ms s m h d w`), or several of them.
///
/// # Errors
/// The text that was found, and the spelling to use instead.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let refused = |help: String| Err(DurationError { value: text.chars().take(40).collect(), help });
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return refused(format!("a number needs a unit: `{text}ms` or `{text}s`"));
    }
    match humantime::parse_duration(text) {
        Ok(duration) if is_short(text) => Ok(duration),
        Ok(duration) => refused(format!("write `{}`", format_duration(duration))),
        Err(_) => refused("write it like `500ms`, `30s`, `5m` or `1h30m`".to_owned()),
    }
}

/// Whether every unit is a short one and directly follows its number.
fn is_short(text: &str) -> bool {
    const UNITS: [&str; 12] = ["ns", "us", "µs", "ms", "s", "sec", "m", "min", "h", "hr", "d", "w"];
    let number = |c: char| c.is_ascii_digit() || c == '.';
    let mut rest = text.trim();
    while !rest.is_empty() {
        rest = rest.trim_start_matches(number);
        let end = rest.find(|c: char| number(c) || c.is_whitespace());
        let (unit, behind) = rest.split_at(end.unwrap_or(rest.len()));
        if !UNITS.contains(&unit) {
            return false;
        }
        rest = behind.trim_start();
    }
    true
}

/// Writes a duration as [`parse_duration`] reads it, exact to the nanosecond: `1h30m`.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let (seconds, nanos) = (duration.as_secs(), u64::from(duration.subsec_nanos()));
    let parts = [
        (seconds / 86_400, "d"),
        (seconds / 3600 % 24, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
        (nanos / 1_000_000, "ms"),
        (nanos / 1000 % 1000, "us"),
        (nanos % 1000, "ns"),
    ];
    let given = parts.iter().filter(|(number, _)| *number > 0);
    let text: String = given.map(|(number, unit)| format!("{number}{unit}")).collect::<Vec<_>>().concat();
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[derive(Clone, Copy)]
pub(super) struct DurationSeed;

impl<'de> DeserializeSeed<'de> for DurationSeed {
    type Value = Duration;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Duration, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for DurationSeed {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as `500ms`, `30s`, `5m` or `1h30m`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Duration, E> {
        parse_duration(text).map_err(|error| E::custom(format!("{error}; {}", error.help())))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Duration, E> {
        self.visit_str(&number.to_string())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_documented_spellings_are_read() {
        for (text, seconds) in [
            ("30s", 30),
            ("300s", 300),
            ("5m", 300),
            ("1h", 3600),
            ("1h30m", 5400),
            ("2m30s", 150),
            ("1h 30m", 5400),
            ("0s", 0),
            ("2min", 120),
            ("1d", 86_400),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
    }

    #[test]
    fn a_refused_duration_is_shown_with_the_spelling_to_use() {
        for (text, help) in [
            ("500", "a number needs a unit: `500ms` or `500s`"),
            ("0", "a number needs a unit: `0ms` or `0s`"),
            ("1 second", "write `1s`"),
            ("2 minutes", "write `2m`"),
            ("2minutes", "write `2m`"),
            ("2day", "write `2d`"),
            ("1 s", "write `1s`"),
            ("", "write it like `500ms`, `30s`, `5m` or `1h30m`"),
            ("soon", "write it like `500ms`, `30s`, `5m` or `1h30m`"),
            ("-1s", "write it like `500ms`, `30s`, `5m` or `1h30m`"),
        ] {
            let error = parse_duration(text).unwrap_err();
            assert_eq!(error.help(), help, "{text}");
            assert_eq!(error.to_string(), format!("`{text}` is not a duration"));
        }
    }

    proptest! {
        #[test]
        fn a_written_duration_is_read_back_exactly(nanos: u64) {
            let duration = Duration::from_nanos(nanos);
            prop_assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".*") {
            let _ = parse_duration(&text);
        }
    }
}
