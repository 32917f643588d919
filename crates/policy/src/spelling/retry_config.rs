//! `retry_config`, one setting at a time, and saved policies.
//!
//! A checked [`Policy`] is saved as the `retry_config` that describes it, with every default written out, and
//! is restored through the same checks as one written by a person. A damaged or forged record cannot become
//! a policy that no file could.

use core::fmt;
use core::ops::RangeInclusive;
use core::time::Duration;
use std::borrow::Cow;

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::backoff;
use super::duration::{DurationSeed, format_duration};
use super::rules::{RETRY_ON, StatusText};
use super::scalar::{NumberSeed, StatusRange, one, one_or_many};
use crate::config::{JitterMode, RetryConfig, listed};
use crate::error::PolicyError;
use crate::limits::Attempts;
use crate::policy::Policy;
use crate::strategy::ParameterValue;

impl RetryConfig {
    /// All keys of a `retry_config`. `max_attempts` and `max_retries` are other spellings of `attempts`.
    pub const KEYS: &[&str] = &[
        "attempts",
        "max_attempts",
        "max_retries",
        "backoff",
        "initial_delay",
        "max_delay",
        "jitter",
        "jitter_factor",
        "retry_budget",
        "max_retry_after",
        "retry_on",
        "retry_statuses",
        "rules",
    ];

    /// Reads one setting. A second value for a setting is refused unless it is equal.
    ///
    /// # Errors
    /// An unknown key, an invalid value, or a contradiction; the settings read so far stay.
    pub fn read<'de, D: Deserializer<'de>>(&mut self, key: &str, value: D) -> Result<(), D::Error> {
        let duration = DurationSeed;
        match key {
            "attempts" | "max_attempts" | "max_retries" => {
                settle(&mut self.attempts, "attempts", one().deserialize(value)?)
            }
            "backoff" => {
                let written = backoff::read(value)?;
                settle(&mut self.backoff, "backoff", written.strategy)?;
                match written.initial {
                    Some(initial) => settle(&mut self.initial_delay, "initial_delay", initial),
                    None => Ok(()),
                }
            }
            "initial_delay" => settle(&mut self.initial_delay, "initial_delay", duration.deserialize(value)?),
            "max_delay" => settle(&mut self.max_delay, "max_delay", duration.deserialize(value)?),
            "jitter" => settle(&mut self.jitter, "jitter", one().deserialize(value)?),
            "jitter_factor" => {
                settle(&mut self.jitter_factor, "jitter_factor", NumberSeed.deserialize(value)?)
            }
            "retry_budget" => settle(&mut self.retry_budget, "retry_budget", duration.deserialize(value)?),
            "max_retry_after" => {
                settle(&mut self.max_retry_after, "max_retry_after", duration.deserialize(value)?)
            }
            "retry_on" => match listed(RETRY_ON.deserialize(value)?) {
                Some(entries) => settle(&mut self.retry_on, "retry_on", entries),
                None => Ok(()),
            },
            "retry_statuses" => settle(&mut self.retry_statuses, "retry_statuses", read_statuses(value)?),
            "rules" => settle(&mut self.rules, "rules", Vec::deserialize(value)?),
            other => Err(de::Error::unknown_field(other, Self::KEYS)),
        }
    }
}

/// Reads HTTP statuses: `429`, `500-599`, `5xx`, or a list of these.
///
/// # Errors
/// The value that is not a status.
pub fn read_statuses<'de, D: Deserializer<'de>>(value: D) -> Result<Vec<RangeInclusive<u16>>, D::Error> {
    let listed: Vec<StatusRange> = one_or_many().deserialize(value)?;
    Ok(listed.into_iter().map(|statuses| statuses.0).collect())
}

/// How a value is shown in the message about two contradicting values.
pub(super) trait ConflictText {
    fn conflict_text(&self) -> String;
}

impl ConflictText for Duration {
    fn conflict_text(&self) -> String {
        format_duration(*self)
    }
}

impl ConflictText for f64 {
    fn conflict_text(&self) -> String {
        self.to_string()
    }
}

impl ConflictText for Attempts {
    fn conflict_text(&self) -> String {
        self.retries().map_or_else(|| "unlimited".to_owned(), |retries| retries.to_string())
    }
}

impl ConflictText for crate::Backoff {
    fn conflict_text(&self) -> String {
        let mut parameters = self.clone();
        let conflict_text = parameters.slots().into_iter().map(|(key, slot)| match slot {
            ParameterValue::Span(span) => format!(" by {}", format_duration(*span)),
            ParameterValue::Factor(factor) => format!(" with {key} {factor}"),
            ParameterValue::Spans(spans) => format!(" with {} {key}", spans.len()),
        });
        self.name().to_owned() + &conflict_text.collect::<String>()
    }
}

impl ConflictText for JitterMode {
    fn conflict_text(&self) -> String {
        match self {
            Self::Off => "false",
            Self::PlusMinus => "true",
            Self::Full => "full",
            Self::Equal => "equal",
            Self::Decorrelated => "decorrelated",
        }
        .to_owned()
    }
}

impl ConflictText for Cow<'static, [Duration]> {
    fn conflict_text(&self) -> String {
        format!("a list of {}", self.len())
    }
}

impl<T> ConflictText for Vec<T> {
    fn conflict_text(&self) -> String {
        format!("a list of {}", self.len())
    }
}

/// Sets a setting, or refuses a second value that differs from the first.
pub(super) fn settle<T: PartialEq + ConflictText, E: de::Error>(
    slot: &mut Option<T>,
    field: &'static str,
    value: T,
) -> Result<(), E> {
    match slot {
        Some(first) if *first != value => Err(E::custom(PolicyError::Conflict {
            field,
            first: first.conflict_text(),
            second: value.conflict_text(),
        })),
        _ => {
            *slot = Some(value);
            Ok(())
        }
    }
}

/// Reads the value of one key of a map.
struct SettingSeed<'a> {
    config: &'a mut RetryConfig,
    key: &'a str,
}

impl<'de> DeserializeSeed<'de> for SettingSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.config.read(self.key, deserializer)
    }
}

/// Reads a map of settings. Only a saved policy has a `deadline`: in a workflow the deadline belongs to the
/// item or the job.
struct ConfigVisitor {
    is_saved: bool,
}

impl<'de> Visitor<'de> for ConfigVisitor {
    type Value = RetryConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_saved { "a saved policy" } else { "the settings of a `retry_config`" })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RetryConfig, A::Error> {
        let mut config = RetryConfig::new();
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            if key != "deadline" || !self.is_saved {
                map.next_value_seed(SettingSeed { config: &mut config, key: &key })?;
            } else if config.deadline.is_some() {
                return Err(de::Error::duplicate_field("deadline"));
            } else {
                config.deadline = Some(map.next_value_seed(DurationSeed)?);
            }
        }
        Ok(config)
    }
}

impl<'de> Deserialize<'de> for RetryConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ConfigVisitor { is_saved: false })
    }
}

impl<'de> Deserialize<'de> for Policy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let config = deserializer.deserialize_map(ConfigVisitor { is_saved: true })?;
        config.build().map_err(de::Error::custom)
    }
}

impl Serialize for RetryConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.write(&mut map)?;
        map.end()
    }
}

impl RetryConfig {
    pub(super) fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        match self.attempts {
            Some(Attempts::AtMost(retries)) => map.serialize_entry("attempts", &retries)?,
            Some(Attempts::Unlimited) => map.serialize_entry("attempts", "unlimited")?,
            None => {}
        }
        if let Some(strategy) = &self.backoff {
            map.serialize_entry("backoff", &backoff::BackoffText(strategy))?;
        }
        for (key, duration) in [
            ("initial_delay", self.initial_delay),
            ("max_delay", self.max_delay),
            ("retry_budget", self.retry_budget),
            ("max_retry_after", self.max_retry_after),
        ] {
            if let Some(duration) = duration {
                map.serialize_entry(key, &format_duration(duration))?;
            }
        }
        match self.jitter {
            Some(JitterMode::Off) => map.serialize_entry("jitter", &false)?,
            Some(JitterMode::PlusMinus) => map.serialize_entry("jitter", &true)?,
            Some(mode) => map.serialize_entry("jitter", &mode.conflict_text())?,
            None => {}
        }
        if let Some(factor) = self.jitter_factor {
            map.serialize_entry("jitter_factor", &factor)?;
        }
        if let Some(entries) = &self.retry_on {
            map.serialize_entry("retry_on", entries)?;
        }
        if let Some(ranges) = &self.retry_statuses {
            let ranges: Vec<_> = ranges.iter().map(StatusText).collect();
            map.serialize_entry("retry_statuses", &ranges)?;
        }
        if let Some(rules) = &self.rules {
            map.serialize_entry("rules", rules)?;
        }
        Ok(())
    }
}

impl Serialize for Policy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let config = RetryConfig::from(self);
        let mut map = serializer.serialize_map(None)?;
        config.write(&mut map)?;
        if let Some(deadline) = self.terms.limits.deadline {
            map.serialize_entry("deadline", &format_duration(deadline))?;
        }
        map.end()
    }
}
