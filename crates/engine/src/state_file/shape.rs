//! The format of the file. Durations are strings like `1m30s`, times are RFC 3339.
//!
//! Reading is lenient: every field is optional, null is the same as absent, and unknown fields are ignored. But an
//! object is never read from a list, of which serde would take the fields in order.

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, forward_to_deserialize_any};
use serde_json::Value;
use undaunted_policy::spelling::format_duration;
use undaunted_policy::{Backoff, Pace, Timestamp};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, remote = "Self", expecting = "an object")]
pub struct RetryCheckpointState {
    /// By `ITEM/COMMAND`; a command of a list by its id.
    #[serde(deserialize_with = "or_default")]
    pub command_retry_states: BTreeMap<String, CommandRetryState>,
    /// The policy of the block at the level of the workflow; null without one.
    pub global_retry_config: Value,
    #[serde(deserialize_with = "or_default")]
    pub retry_execution_history: Vec<RetryExecution>,
    #[serde(deserialize_with = "or_default")]
    pub circuit_breaker_states: BTreeMap<String, CircuitBreakerState>,
    /// By item. Files of other systems may name a command of the item instead.
    #[serde(deserialize_with = "or_default")]
    pub retry_correlation_map: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, remote = "Self", expecting = "an object")]
pub struct CommandRetryState {
    /// The same as its key.
    #[serde(deserialize_with = "or_default")]
    pub command_id: String,
    pub attempt_count: Option<u32>,
    /// [`UNLIMITED`] or more means unlimited.
    pub max_attempts: Option<u64>,
    pub last_attempt_at: Option<InstantText>,
    pub next_retry_at: Option<InstantText>,
    pub backoff_state: Option<BackoffState>,
    #[serde(deserialize_with = "or_default")]
    pub retry_history: Vec<RetryAttempt>,
    pub current_strategy: Value,
    #[serde(deserialize_with = "or_default")]
    pub is_circuit_broken: bool,
    /// An addition of Undaunted: the sum of all delays, the pending one included.
    pub delay_spent: Option<DurationText>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, remote = "Self", expecting = "an object")]
pub struct BackoffState {
    pub strategy: Option<BackoffStrategy>,
    /// The delay of the pending retry, else the last one.
    pub current_delay: Option<DurationText>,
    pub base_delay: Option<DurationText>,
    pub max_delay: Option<DurationText>,
    /// 1 unless the delay is multiplied.
    pub multiplier: Option<f64>,
    #[serde(deserialize_with = "or_default")]
    pub jitter: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum BackoffStrategy {
    Fixed {
        delay: DurationText,
    },
    Linear {
        base: DurationText,
        increment: DurationText,
    },
    Exponential {
        base: DurationText,
        multiplier: f64,
        max: DurationText,
    },
    /// An addition of Undaunted.
    Fibonacci {
        base: DurationText,
    },
    /// A formula is refused; a list of delays is an addition of Undaunted.
    Custom {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        formula: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delays: Option<Vec<DurationText>>,
    },
}

impl From<&Pace> for BackoffStrategy {
    fn from(pace: &Pace) -> Self {
        let base = DurationText(pace.initial_delay());
        let max = DurationText(pace.max_delay());
        match pace.backoff() {
            Backoff::Fixed => Self::Fixed { delay: base },
            Backoff::Linear { increment } => Self::Linear { base, increment: DurationText(*increment) },
            Backoff::Exponential { base: multiplier } => {
                Self::Exponential { base, multiplier: *multiplier, max }
            }
            Backoff::Fibonacci => Self::Fibonacci { base },
            Backoff::Custom { delays } => Self::Custom {
                formula: None,
                delays: Some(delays.iter().copied().map(DurationText).collect()),
            },
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, remote = "Self", expecting = "an object")]
pub struct RetryAttempt {
    #[serde(deserialize_with = "or_default")]
    pub attempt_number: u32,
    pub executed_at: Option<InstantText>,
    pub duration: Option<DurationText>,
    #[serde(deserialize_with = "or_default")]
    pub success: bool,
    pub error: Option<String>,
    /// The delay before the attempt.
    pub backoff_applied: Option<DurationText>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, remote = "Self", expecting = "an object")]
pub struct RetryExecution {
    /// The same as the command's key.
    #[serde(deserialize_with = "or_default")]
    pub command_id: String,
    #[serde(deserialize_with = "or_default")]
    pub attempt_number: u32,
    pub executed_at: Option<InstantText>,
    #[serde(deserialize_with = "or_default")]
    pub success: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, remote = "Self", expecting = "an object")]
pub struct CircuitBreakerState {
    /// `Closed`, `Open` or `HalfOpen`.
    #[serde(deserialize_with = "or_default")]
    pub state: String,
    /// Failures since the last success that counted, those that opened it included.
    #[serde(deserialize_with = "or_default")]
    pub failure_count: u32,
    pub failure_threshold: Option<u32>,
    pub last_failure_at: Option<InstantText>,
    pub recovery_timeout: Option<DurationText>,
    pub half_open_max_calls: Option<u32>,
    /// An addition of Undaunted: successes in a row while it is half open.
    #[serde(deserialize_with = "or_default")]
    pub success_count: u32,
    /// An addition of Undaunted, as the next one. Without them the last failure opened it, for `recovery_timeout`.
    pub opened_at: Option<InstantText>,
    pub next_attempt_at: Option<InstantText>,
}

/// The largest number of the format, which stands for no limit.
pub const UNLIMITED: u64 = u32::MAX as u64;

/// Reads null as the value of an absent field.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Reads nothing but an object.
struct ObjectReader<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for ObjectReader<D> {
    type Error = D::Error;

    fn deserialize_any<V: de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Implements serde for structs by the functions that it derives for them.
macro_rules! objects {
    ($($name:ident,)*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, to)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                Self::deserialize(ObjectReader(from))
            }
        }
    )*};
}

objects! {
    RetryCheckpointState,
    CommandRetryState,
    BackoffState,
    RetryAttempt,
    RetryExecution,
    CircuitBreakerState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DurationText(pub Duration);

impl Serialize for DurationText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format_duration(self.0))
    }
}

impl<'de> Deserialize<'de> for DurationText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let parsed = humantime::parse_duration(&text);
        parsed
            .map(Self)
            .map_err(|_| de::Error::custom(format!("`{text}` is not a duration like `500ms` or `1m30s`")))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct InstantText(pub Timestamp);

impl Serialize for InstantText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let since = Duration::from_nanos(self.0.as_nanos());
        let at = UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH);
        // To the nanosecond, so that a due time survives the round trip.
        serializer.collect_str(&humantime::format_rfc3339_nanos(at))
    }
}

impl<'de> Deserialize<'de> for InstantText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        instant(&text)
            .map(Self)
            .ok_or_else(|| de::Error::custom(format!("`{text}` is not a time in RFC 3339")))
    }
}

/// A time with `Z`, or with an offset such as `+02:00`, which humantime does not read.
fn instant(text: &str) -> Option<Timestamp> {
    let (local, offset) = match text.strip_suffix('Z') {
        Some(local) => (local, "+00:00"),
        None => text.split_at_checked(text.len().checked_sub("+00:00".len())?)?,
    };
    // `parse_rfc3339` accepts an empty fraction, and anything after the first `Z`.
    if local.contains('Z') || local.ends_with('.') {
        return None;
    }
    let since = |text: &str| humantime::parse_rfc3339(text).ok()?.duration_since(UNIX_EPOCH).ok();
    let local = since(&format!("{local}Z"))?;
    let (sign, time) = offset.split_at_checked(1)?;
    // The digits of an offset are those of a time of day.
    let offset = since(&format!("1970-01-01T{time}:00Z"))?;
    let since = match sign {
        "+" => local.checked_sub(offset)?,
        "-" => local.checked_add(offset)?,
        _ => return None,
    };
    Some(Timestamp::ZERO.after(since))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_with_z_or_with_an_offset() {
        let noon = instant("2025-01-16T12:00:00Z");
        assert!(noon.is_some());
        assert_eq!(instant("2025-01-16T14:00:00.000+02:00"), noon);
        assert_eq!(instant("2025-01-16T07:30:00-04:30"), noon);
        assert_eq!(instant("2025-01-16T12:00:00+00:00"), noon);
        for wrong in [
            "",
            "now",
            "2025-01-16",
            "2025-01-16T12:00:00",
            "1969-01-01T00:00:00Z",
            "2025-01-16T12:00:00Z:00Z",
            "2025-01-16T12:00:00.Z",
            "2025-01-16T12:00:00*02:00",
            "2025-01-16T12:00:00++2:00",
            "2025-01-16T12:00:00+02:60",
            "2025-01-16T12:00:00+24:00",
            "2025-01-16T12:00:00+2:000",
        ] {
            assert_eq!(instant(wrong), None, "{wrong}");
        }
    }
}
