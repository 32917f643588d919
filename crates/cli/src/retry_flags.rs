//! The retry flags of `exec` and `map`: a `retry_config` that is typed instead of written.
//!
//! They become the same block a workflow file would hold and are checked by the same code, so a flag
//! means exactly what its setting means.

use clap::Args;
use serde_json::{Map, Value, json};

/// Retries without `--attempts`.
const DEFAULT: u32 = 3;

/// How commands are retried.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Retry flags")]
pub(crate) struct RetryFlags {
    /// Retries after the first attempt, or `unlimited` [default: 3]
    #[arg(long, value_name = "N")]
    attempts: Option<String>,

    /// How the delay grows: fixed, linear (by the first delay each time), exponential or fibonacci
    /// [default: exponential]
    #[arg(long, value_name = "STRATEGY")]
    backoff: Option<String>,

    /// The delay before the first retry [default: 1s]
    #[arg(long, value_name = "DURATION")]
    initial_delay: Option<String>,

    /// The longest delay [default: 30s]
    #[arg(long, value_name = "DURATION")]
    max_delay: Option<String>,

    /// Spread the delays: true (plus or minus 30 %), full, equal or decorrelated
    #[arg(long, value_name = "MODE", num_args = 0..=1, default_missing_value = "true")]
    jitter: Option<String>,

    /// How long all delays of a command may be together
    #[arg(long, value_name = "DURATION")]
    retry_budget: Option<String>,

    /// How long one attempt may take
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,

    /// Retry only these failures: `network`, `timeout`, `server_error`, `rate_limit`
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    retry_on: Vec<String>,

    /// Retries all items may use together, up to what the operator allows
    #[arg(long, value_name = "N")]
    job_retries: Option<u32>,
}

impl RetryFlags {
    pub(crate) fn put(&self, command: &mut Map<String, Value>) {
        let mut config = Map::new();
        let attempts = match self.attempts.as_deref() {
            // In a file 0 asks for the operator's default; on the command line it means none.
            _ if self.job_retries == Some(0) => json!(0),
            // The same as an empty block gives.
            None => json!(DEFAULT),
            Some(text) => text.parse::<u64>().map_or_else(|_| text.into(), Value::from),
        };
        config.insert("attempts".to_owned(), attempts);
        let texts = [
            ("initial_delay", &self.initial_delay),
            ("max_delay", &self.max_delay),
            ("retry_budget", &self.retry_budget),
        ];
        let backoff = match self.backoff.as_deref() {
            // There is only one delay to type, so it is the increment too.
            Some("linear") => {
                let step = self.initial_delay.as_deref().unwrap_or("1s");
                Some(json!({ "linear": { "increment": step } }))
            }
            other => other.map(Value::from),
        };
        config.extend(backoff.map(|backoff| ("backoff".to_owned(), backoff)));
        for (name, value) in texts {
            if let Some(value) = value {
                config.insert(name.to_owned(), value.as_str().into());
            }
        }
        if let Some(mode) = &self.jitter {
            let mode = match mode.as_str() {
                "true" => true.into(),
                "false" => false.into(),
                mode => Value::from(mode),
            };
            config.insert("jitter".to_owned(), mode);
        }
        if !self.retry_on.is_empty() {
            config.insert("retry_on".to_owned(), self.retry_on.clone().into());
        }
        command.insert("retry_config".to_owned(), config.into());
        if let Some(timeout) = &self.timeout {
            command.insert("timeout".to_owned(), timeout.as_str().into());
        }
    }

    pub(crate) fn attempts(&self) -> u32 {
        let typed = self.attempts.as_deref();
        typed.map_or(DEFAULT, |text| text.parse().unwrap_or(u32::MAX))
    }

    /// The retries all items share.
    pub(crate) fn job_retries(&self) -> Option<u32> {
        self.job_retries.filter(|retries| *retries > 0)
    }
}
