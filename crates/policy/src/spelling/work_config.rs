//! `work_config`, the dialect of HTTP flows: delays in milliseconds, and −1 for unlimited retries.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::backoff::Backoff;
use crate::config::RetryConfig;
use crate::error::PolicyError;
use crate::limits::Attempts;

/// The retry settings of a flow's step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkConfig {
    /// Retries after the first attempt; −1 is unlimited, absent is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<i64>,
    /// The first delay, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<i64>,
    /// The cap, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_backoff: Option<i64>,
    /// How the delay grows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_type: Option<BackoffType>,
    /// How many items run at a time: not a retry setting, but this dialect has it here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallelism: Option<u32>,
}

/// How the delay of a `work_config` grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackoffType {
    /// Every delay is the first one.
    Fixed,
    /// Each delay is longer by the first one.
    Linear,
    /// Each delay is twice the one before.
    Exponential,
}

/// The engine's defaults for settings that a step omits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkDefaults {
    /// Retries of a step without any `work_config`.
    pub max_retries: Attempts,
    /// The first delay of a step that sets none.
    pub backoff: Duration,
    /// The cap of a step that sets none.
    pub max_backoff: Duration,
    /// How the delay grows.
    pub backoff_type: BackoffType,
}

impl WorkDefaults {
    /// 10 retries, doubling from 1s, capped at 60s.
    pub const DEFAULT: Self = Self {
        max_retries: Attempts::AtMost(10),
        backoff: Duration::from_secs(1),
        max_backoff: Duration::from_mins(1),
        backoff_type: BackoffType::Exponential,
    };

    /// The settings of a step that has no `work_config`.
    #[must_use]
    pub fn retry_config(&self) -> RetryConfig {
        settings(self.max_retries, self.backoff, self.max_backoff, self.backoff_type)
    }
}

impl Default for WorkDefaults {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl WorkConfig {
    /// Converts these settings to a [`RetryConfig`].
    ///
    /// # Errors
    /// A negative number (except −1 for `max_retries`), or a cap below the first delay.
    pub fn retry_config(&self, defaults: &WorkDefaults) -> Result<RetryConfig, PolicyError> {
        let attempts = match self.max_retries.unwrap_or(0) {
            -1 => Attempts::Unlimited,
            retries => Attempts::AtMost(u32::try_from(retries).map_err(|_| {
                refused("max_retries", retries, "a number of at least 0, or -1 for unlimited")
            })?),
        };
        let backoff = millis("backoff", self.backoff)?;
        // Some clients send 0 for an absent integer. A cap of 0 would be a hot loop.
        let max_backoff = millis("max_backoff", self.max_backoff.filter(|cap| *cap != 0))?;
        if let (Some(first), Some(cap)) = (backoff, max_backoff)
            && cap < first
        {
            let cap = self.max_backoff.unwrap_or_default();
            return Err(refused("max_backoff", cap, "a number of at least `backoff`"));
        }
        Ok(settings(
            attempts,
            backoff.unwrap_or(defaults.backoff),
            max_backoff.unwrap_or(defaults.max_backoff),
            self.backoff_type.unwrap_or(defaults.backoff_type),
        ))
    }
}

fn settings(attempts: Attempts, first: Duration, cap: Duration, growth: BackoffType) -> RetryConfig {
    let backoff = match growth {
        BackoffType::Fixed => Backoff::Fixed,
        BackoffType::Linear => Backoff::Linear { increment: first },
        BackoffType::Exponential => Backoff::DEFAULT,
    };
    RetryConfig { attempts: Some(attempts), ..RetryConfig::new() }
        .backoff(backoff)
        .initial_delay(first)
        .max_delay(cap)
}

fn millis(field: &'static str, value: Option<i64>) -> Result<Option<Duration>, PolicyError> {
    let read = |number| {
        let millis = u64::try_from(number);
        let millis = millis.map_err(|_| refused(field, number, "a number of milliseconds of at least 0"));
        millis.map(Duration::from_millis)
    };
    value.map(read).transpose()
}

fn refused(field: &'static str, value: i64, accepted: &'static str) -> PolicyError {
    PolicyError::OutOfRange { field, value: value.to_string(), accepted }
}
