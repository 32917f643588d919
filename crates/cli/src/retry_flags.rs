//! The retry flags of `exec` and `map`.
//!
//! They become a `retry_config` block and are checked like that of a workflow file, so a flag means exactly
//! what its setting means.

use clap::Args;
use serde_json::{Map, Value, json};

/// The number of retries without `--attempts`.
const DEFAULT: u32 = 3;

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Retry options")]
pub(crate) struct RetryFlags {
    /// Retry at most N times after the first attempt, or `unlimited` [default: 3]
    #[arg(long, value_name = "N")]
    attempts: Option<String>,

    /// Growth of the delay: fixed, linear (by the initial delay), exponential or fibonacci [default: exponential]
    #[arg(long, value_name = "STRATEGY")]
    backoff: Option<String>,

    /// Delay before the first retry [default: 1s]
    #[arg(long, value_name = "DURATION")]
    initial_delay: Option<String>,

    /// Longest delay [default: 30s]
    #[arg(long, value_name = "DURATION")]
    max_delay: Option<String>,

    /// Randomize the delays: true (plus or minus 30 %), full, equal or decorrelated [default: false]
    #[arg(long, value_name = "MODE", num_args = 0..=1, default_missing_value = "true")]
    jitter: Option<String>,

    /// Limit the sum of all delays of a command [default: no limit]
    #[arg(long, value_name = "DURATION")]
    retry_budget: Option<String>,

    /// Limit the time of one attempt [default: no limit]
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,

    /// Retry only these failures: `network`, `timeout`, `server_error`, `rate_limit` [default: all]
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    retry_on: Vec<String>,

    /// Limit the retries of all items together [default: no limit]
    #[arg(long, value_name = "N")]
    job_retries: Option<u32>,
}

impl RetryFlags {
    pub(crate) fn put(&self, command: &mut Map<String, Value>) {
        let mut config = Map::new();
        let attempts = match self.attempts.as_deref() {
            // In a file 0 is the operator's default; on the command line it means no retries.
            _ if self.job_retries == Some(0) => json!(0),
            // The default of an empty block.
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
            // There is no flag for the increment, so the first delay serves as both.
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

    /// Gives the workflow a retry pool if `--job-retries` asks for one.
    pub(crate) fn put_pool(&self, workflow: &mut Value) {
        if let (Value::Object(fields), Some(retries @ 1..)) = (workflow, self.job_retries) {
            // An item may use as many as its own flag allows.
            let typed = self.attempts.as_deref();
            let share = typed.map_or(DEFAULT, |text| text.parse().unwrap_or(u32::MAX));
            fields.insert("retry_budget".to_owned(), retries.into());
            fields.insert("retry_budget_per_workflow".to_owned(), share.into());
        }
    }
}
