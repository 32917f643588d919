//! The retry flags of `exec` and `map`.
//!
//! They become a `retry_config` block and are checked like that of a workflow file, so a flag means exactly
//! what its setting means.

use std::io::{self, Write};

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Map, Value, json};
use undaunted_policy::PoolCeilings;

use crate::flag_values::{delay, retries, retries_of_pool, time_limit};

const STRATEGIES: [&str; 4] = ["fixed", "linear", "exponential", "fibonacci"];
const JITTER_MODES: [&str; 5] = ["true", "false", "full", "equal", "decorrelated"];
const FAILURE_KINDS: [&str; 4] = ["network", "timeout", "server_error", "rate_limit"];

/// The number of retries without `--attempts`.
const DEFAULT: u32 = 3;

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Retry options")]
pub(crate) struct RetryFlags {
    /// Retry at most N times after the first attempt, or `unlimited` [default: 3]
    #[arg(long, value_name = "N", value_parser = retries, allow_negative_numbers = true)]
    attempts: Option<String>,

    /// Growth of the delay: fixed, linear (by the initial delay), exponential or fibonacci [default: exponential]
    #[arg(long, value_name = "STRATEGY", hide_possible_values = true)]
    #[arg(value_parser = PossibleValuesParser::new(STRATEGIES))]
    backoff: Option<String>,

    /// Delay before the first retry [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = delay)]
    initial_delay: Option<String>,

    /// Longest delay [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = delay)]
    max_delay: Option<String>,

    /// Randomize the delays: true (plus or minus 30 %), false, full, equal or decorrelated [default: false]
    #[arg(long, value_name = "MODE", num_args = 0..=1, default_missing_value = "true")]
    #[arg(value_parser = PossibleValuesParser::new(JITTER_MODES), hide_possible_values = true)]
    jitter: Option<String>,

    /// Limit the sum of all delays of a command [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = delay)]
    retry_budget: Option<String>,

    /// Limit the time of one attempt [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = time_limit)]
    timeout: Option<String>,

    /// Retry only these failures: `network`, `timeout`, `server_error`, `rate_limit` [default: all]
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    #[arg(value_parser = PossibleValuesParser::new(FAILURE_KINDS), hide_possible_values = true)]
    retry_on: Vec<String>,

    /// Limit the retries of all items together [default: no limit]
    #[arg(long, value_name = "N", value_parser = retries_of_pool, allow_negative_numbers = true)]
    job_retries: Option<u64>,
}

impl RetryFlags {
    /// The most retries of an item; `None` if unlimited. Within a pool, an item has a share of it, which the
    /// operator limits.
    fn retries(&self, ceilings: &PoolCeilings) -> Option<u32> {
        let typed = self.typed_retries();
        match self.job_retries {
            // In a file 0 is the operator's default; on the command line it means no retries.
            Some(0) => Some(0),
            Some(_) => Some(typed.unwrap_or(u32::MAX).min(ceilings.max_per_item)),
            None => typed,
        }
    }

    fn typed_retries(&self) -> Option<u32> {
        self.attempts.as_deref().map_or(Some(DEFAULT), |text| text.parse().ok())
    }

    pub(crate) fn print_notes(&self, ceilings: &PoolCeilings) {
        for note in self.notes(ceilings) {
            // Without standard error the job runs all the same.
            let _ = writeln!(io::stderr(), "note: {note}");
        }
    }

    /// What the operator's limits change, named as it was typed.
    fn notes(&self, ceilings: &PoolCeilings) -> Vec<String> {
        let mut notes = Vec::new();
        let Some(total @ 1..) = self.job_retries else {
            return notes;
        };
        if total > u64::from(ceilings.max_total) {
            let most = ceilings.max_total;
            notes.push(format!("--job-retries {total} exceeds RETRY_BUDGET_MAX; {most} is used instead"));
        }
        let most = ceilings.max_per_item;
        if self.typed_retries().is_none_or(|typed| typed > most) {
            let typed = match &self.attempts {
                Some(typed) => format!("--attempts {typed}"),
                None => format!("the default of {DEFAULT} retries"),
            };
            notes.push(format!(
                "with --job-retries, {typed} exceeds RETRY_BUDGET_PER_WORKFLOW_MAX; {most} is used instead"
            ));
        }
        notes
    }

    pub(crate) fn put(&self, command: &mut Map<String, Value>, ceilings: &PoolCeilings) {
        let mut config = Map::new();
        let attempts = self.retries(ceilings).map_or_else(|| json!("unlimited"), Value::from);
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
    pub(crate) fn put_pool(&self, workflow: &mut Value, ceilings: &PoolCeilings) {
        if let (Value::Object(fields), Some(retries @ 1..)) = (workflow, self.job_retries) {
            // An item may use as many as its own flag allows.
            let share = self.retries(ceilings).unwrap_or(u32::MAX);
            fields.insert("retry_budget".to_owned(), retries.min(ceilings.max_total.into()).into());
            fields.insert("retry_budget_per_workflow".to_owned(), share.into());
        }
    }
}
