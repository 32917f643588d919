//! The retry flags of `exec` and `map`.
//!
//! They become a `retry_config` block and are checked like that of a workflow file, so a flag means exactly
//! what its setting means.

use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Map, Value, json};
use undaunted_policy::spelling::parse_duration;

const STRATEGIES: [&str; 4] = ["fixed", "linear", "exponential", "fibonacci"];
const JITTER_MODES: [&str; 5] = ["true", "false", "full", "equal", "decorrelated"];
const FAILURE_KINDS: [&str; 4] = ["network", "timeout", "server_error", "rate_limit"];

/// The number of retries without `--attempts`.
const DEFAULT: u32 = 3;

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Retry options")]
pub(crate) struct RetryFlags {
    /// Retry at most N times after the first attempt, or `unlimited` [default: 3]
    #[arg(long, value_name = "N", value_parser = retries)]
    attempts: Option<String>,

    /// Growth of the delay: fixed, linear (by the initial delay), exponential or fibonacci [default: exponential]
    #[arg(long, value_name = "STRATEGY", hide_possible_values = true)]
    #[arg(value_parser = PossibleValuesParser::new(STRATEGIES))]
    backoff: Option<String>,

    /// Delay before the first retry [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = duration_text)]
    initial_delay: Option<String>,

    /// Longest delay [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = duration_text)]
    max_delay: Option<String>,

    /// Randomize the delays: true (plus or minus 30 %), full, equal or decorrelated [default: false]
    #[arg(long, value_name = "MODE", num_args = 0..=1, default_missing_value = "true")]
    #[arg(value_parser = PossibleValuesParser::new(JITTER_MODES), hide_possible_values = true)]
    jitter: Option<String>,

    /// Limit the sum of all delays of a command [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = duration_text)]
    retry_budget: Option<String>,

    /// Limit the time of one attempt [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = duration_text)]
    timeout: Option<String>,

    /// Retry only these failures: `network`, `timeout`, `server_error`, `rate_limit` [default: all]
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    #[arg(value_parser = PossibleValuesParser::new(FAILURE_KINDS), hide_possible_values = true)]
    retry_on: Vec<String>,

    /// Limit the retries of all items together [default: no limit]
    #[arg(long, value_name = "N")]
    job_retries: Option<u32>,
}

/// Refuses a number of retries that a `retry_config` would refuse, so that the error names the flag.
fn retries(text: &str) -> Result<String, String> {
    if text == "unlimited" || text.parse::<u32>().is_ok() {
        return Ok(text.to_owned());
    }
    Err("must be a number of retries, or `unlimited`".to_owned())
}

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| format!("{error}; {}", error.help()))
}

fn duration_text(text: &str) -> Result<String, String> {
    duration(text).map(|_| text.to_owned())
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
            let share = self.attempts.as_deref().map_or(DEFAULT, |text| text.parse().unwrap_or(u32::MAX));
            fields.insert("retry_budget".to_owned(), retries.into());
            fields.insert("retry_budget_per_workflow".to_owned(), share.into());
        }
    }
}
