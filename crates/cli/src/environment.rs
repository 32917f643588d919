//! The settings of the operator, read from environment variables.

use std::env;
use std::ffi::OsString;
use std::time::Duration;

use undaunted_engine::workflow::Operator;
use undaunted_policy::spelling::{BackoffType, WorkDefaults};
use undaunted_policy::{Attempts, CompletionRule, PoolCeilings};

use crate::flag_values::retries_of_pool;
use crate::{CommandError, Result};

pub(crate) fn operator() -> Result<Operator> {
    // Read here to report an invalid value before a job is stored; used later.
    check_interval()?;
    let pool = PoolCeilings::DEFAULT;
    let work = work_defaults()?;
    Ok(Operator {
        ceilings: PoolCeilings {
            default_total: pool_count("RETRY_BUDGET_DEFAULT")?.unwrap_or(pool.default_total),
            max_total: pool_count("RETRY_BUDGET_MAX")?.unwrap_or(pool.max_total),
            default_per_item: pool_count("RETRY_BUDGET_PER_WORKFLOW_DEFAULT")?
                .unwrap_or(pool.default_per_item),
            max_per_item: pool_count("RETRY_BUDGET_PER_WORKFLOW_MAX")?.unwrap_or(pool.max_per_item),
        },
        pool_for_all: env::var_os("RETRY_BUDGET_DEFAULT").is_some(),
        work,
        completion: CompletionRule {
            min: count("BEST_EFFORT_DEFAULT_MIN_DCS")?.map_or(1, u64::from),
            deadline: seconds("BEST_EFFORT_DEFAULT_DEADLINE_SECONDS")?
                .unwrap_or(CompletionRule::DEFAULT_DEADLINE),
            ..CompletionRule::default()
        },
        late_results_count: read(
            "BEST_EFFORT_LATE_RESULT_POLICY",
            "log_only or update_result",
            late_results,
        )?
        .unwrap_or_default(),
        // Only `serve` can set it.
        breaker_per_origin: false,
        has_functions: false,
    })
}

fn work_defaults() -> Result<WorkDefaults> {
    let default = WorkDefaults::DEFAULT;
    let retries = read("RETRY_MAX_RETRIES", "a number of at least 0, or -1 for unlimited", retries)?;
    let backoff_type = read("RETRY_BACKOFF_TYPE", "fixed, linear or exponential", backoff_type)?;
    let work = WorkDefaults {
        max_retries: retries.unwrap_or(default.max_retries),
        backoff: millis("RETRY_BACKOFF")?.unwrap_or(default.backoff),
        max_backoff: millis("RETRY_MAX_BACKOFF")?.unwrap_or(default.max_backoff),
        backoff_type: backoff_type.unwrap_or(default.backoff_type),
    };
    if work.max_backoff.is_zero() || work.max_backoff < work.backoff {
        return Err(CommandError::Usage(format!(
            "the environment variable RETRY_MAX_BACKOFF must be above 0 and at least RETRY_BACKOFF ({}), \
             not {}",
            work.backoff.as_millis(),
            work.max_backoff.as_millis()
        )));
    }
    Ok(work)
}

/// Completion rules are evaluated at least this often, besides at every result and at their deadlines.
pub(crate) fn check_interval() -> Result<Duration> {
    const DEFAULT: Duration = Duration::from_secs(5);
    Ok(seconds("BEST_EFFORT_CHECK_INTERVAL_SECONDS")?.unwrap_or(DEFAULT))
}

/// A text variable; an empty one counts as unset.
pub(crate) fn text(name: &str) -> Result<Option<String>> {
    let text = read(name, "UTF-8 text", |value| Some(value.to_owned()))?;
    Ok(text.filter(|text| !text.is_empty()))
}

/// Like [`text`], for a secret: the error does not contain the value.
pub(crate) fn secret(name: &str) -> Result<Option<String>> {
    let value = env::var_os(name).filter(|value| !value.is_empty()).map(OsString::into_string).transpose();
    let value = value.map(|value| value.map(|value| value.trim().to_owned()));
    value.map_err(|_| CommandError::Usage(format!("the environment variable {name} must be UTF-8 text")))
}

fn late_results(value: &str) -> Option<bool> {
    match value {
        "log_only" => Some(false),
        "update_result" => Some(true),
        _ => None,
    }
}

fn seconds(name: &str) -> Result<Option<Duration>> {
    let parse = |value: &str| Duration::try_from_secs_f64(value.parse().ok()?).ok();
    let positive = |value: &str| parse(value).filter(|seconds| !seconds.is_zero());
    read(name, "a number of seconds above 0", positive)
}

fn count(name: &str) -> Result<Option<u32>> {
    read(name, "a number of at least 0", |value| value.parse().ok())
}

/// A count of retries: one that is too large to represent is the largest.
fn pool_count(name: &str) -> Result<Option<u32>> {
    let count = |value: &str| Some(u32::try_from(retries_of_pool(value).ok()?).unwrap_or(u32::MAX));
    read(name, "a number of at least 0", count)
}

fn millis(name: &str) -> Result<Option<Duration>> {
    let parse = |value: &str| value.parse().ok().map(Duration::from_millis);
    read(name, "a number of milliseconds of at least 0", parse)
}

fn retries(value: &str) -> Option<Attempts> {
    match value {
        "-1" => Some(Attempts::Unlimited),
        value => value.parse().ok().map(Attempts::AtMost),
    }
}

fn backoff_type(value: &str) -> Option<BackoffType> {
    match value {
        "fixed" => Some(BackoffType::Fixed),
        "linear" => Some(BackoffType::Linear),
        "exponential" => Some(BackoffType::Exponential),
        _ => None,
    }
}

fn read<T>(name: &str, accepted: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>> {
    let Some(value): Option<OsString> = env::var_os(name) else {
        return Ok(None);
    };
    match value.to_str().and_then(parse) {
        Some(meaning) => Ok(Some(meaning)),
        None => Err(CommandError::Usage(format!(
            "the environment variable {name} must be {accepted}, not `{}`",
            value.to_string_lossy()
        ))),
    }
}
