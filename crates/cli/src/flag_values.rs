//! Reads the values of flags.
//!
//! clap puts the name of the flag before these errors, so each says which values the flag takes. A value that a
//! workflow file would refuse later is refused here, where the flag is known and not only the setting it becomes.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use undaunted_policy::spelling::parse_duration;

/// The longest duration of a policy, 2^64 ns.
const LONGEST: Duration = Duration::from_nanos(u64::MAX);

/// A number type of a flag.
pub(crate) trait WholeNumber: FromStr + Display {
    const MOST: Self;
}

impl WholeNumber for u32 {
    const MOST: Self = Self::MAX;
}

impl WholeNumber for u64 {
    const MOST: Self = Self::MAX;
}

pub(crate) fn whole_number<N: WholeNumber>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("must be a whole number from 0 to {}", N::MOST))
}

/// A number of retries that the operator limits: one that is too large to represent is the largest.
pub(crate) fn retries_of_pool(text: &str) -> Result<u64, String> {
    let is_whole = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_whole.then(|| text.parse().unwrap_or(u64::MAX));
    number.ok_or_else(|| "must be a whole number of at least 0".to_owned())
}

/// As [`retries_of_pool`], for retries to add.
pub(crate) fn added_retries(text: &str) -> Result<u32, String> {
    let number = retries_of_pool(text).ok().filter(|number| *number > 0);
    let number = number.map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    number.ok_or_else(|| "must be a whole number of at least 1".to_owned())
}

pub(crate) fn at_least_one(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("must be a whole number from 1 to {}", u32::MAX))
}

pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
    rate.ok_or_else(|| "must be a number above 0, such as 0.5 or 20".to_owned())
}

/// The time between two starts at a rate, which is above 0.
pub(crate) fn interval(rate: f64) -> Duration {
    Duration::try_from_secs_f64(rate.recip()).map_or(LONGEST, |every| every.min(LONGEST))
}

/// A number of retries as a `retry_config` takes it.
pub(crate) fn retries(text: &str) -> Result<String, String> {
    if text == "unlimited" || text.parse::<u32>().is_ok() {
        return Ok(text.to_owned());
    }
    Err(format!("must be a whole number from 0 to {}, or `unlimited`", u32::MAX))
}

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| format!("{error}; {}", error.help()))
}

/// A delay or a sum of delays as a `retry_config` takes it.
pub(crate) fn delay(text: &str) -> Result<String, String> {
    if duration(text)? > LONGEST {
        return Err("must be a duration of at most 584 years".to_owned());
    }
    Ok(text.to_owned())
}

pub(crate) fn time_limit(text: &str) -> Result<String, String> {
    if duration(text)?.is_zero() {
        return Err("must be a duration above 0; leave the flag out for no limit".to_owned());
    }
    delay(text)
}
