//! The terms of a retry policy, read from its saved form.
//!
//! An independent oracle: nothing is taken from the fields a verdict is computed from, and delays are
//! computed in numbers too wide to overflow. Where only floating point gives the delay of a strategy, nothing
//! is expected.

use std::time::Duration;

use serde_json::Value;
use undaunted_policy::spelling::parse_duration;
use undaunted_policy::{Backoff, Jitter, Policy};

use super::byte_source::LONGEST;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ExpectedTerms {
    /// `None` is unlimited.
    pub(super) retries: Option<u32>,
    pub(super) backoff: Backoff,
    pub(super) initial_delay: Duration,
    pub(super) max_delay: Duration,
    pub(super) jitter: Jitter,
    pub(super) retry_budget: Option<Duration>,
    pub(super) max_retry_after: Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ExpectedPolicy {
    pub(super) base: ExpectedTerms,
    pub(super) own: Vec<Option<ExpectedTerms>>,
}

impl ExpectedPolicy {
    /// The terms that a policy shows when it is saved.
    pub(super) fn of(policy: &Policy) -> Option<Self> {
        let saved = serde_json::to_value(policy).ok()?;
        let own = saved.get("rules")?.as_array()?.iter().map(|rule| {
            let terms = rule.get("retry_config");
            terms.map_or(Some(None), |terms| ExpectedTerms::read(terms).map(Some))
        });
        Some(Self { base: ExpectedTerms::read(&saved)?, own: own.collect::<Option<_>>()? })
    }

    /// The terms in force when this rule decided.
    pub(super) fn when(&self, rule: Option<usize>) -> &ExpectedTerms {
        let own = rule.and_then(|row| self.own.get(row)?.as_ref());
        own.unwrap_or(&self.base)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &ExpectedTerms> {
        self.own.iter().flatten().chain([&self.base])
    }

    /// The largest number of retries and the largest budget of all terms; `None` is unlimited.
    pub(super) fn most(&self) -> (Option<u32>, Option<Duration>) {
        let retries: Option<Vec<u32>> = self.all().map(|one| one.retries).collect();
        let budgets: Option<Vec<Duration>> = self.all().map(|one| one.retry_budget).collect();
        let retries = retries.and_then(|retries| retries.into_iter().max());
        (retries, budgets.and_then(|budgets| budgets.into_iter().max()))
    }
}

impl ExpectedTerms {
    /// Reads a saved policy, or the saved terms of one of its rules. Every setting is written out.
    pub(super) fn read(saved: &Value) -> Option<Self> {
        let duration = |key| duration(saved.get(key)?);
        Some(Self {
            retries: match saved.get("attempts")? {
                Value::String(word) if word == "unlimited" => None,
                number => Some(u32::try_from(number.as_u64()?).ok()?),
            },
            backoff: backoff(saved.get("backoff")?)?,
            initial_delay: duration("initial_delay")?,
            max_delay: duration("max_delay")?,
            jitter: match saved.get("jitter")? {
                Value::Bool(false) => Jitter::None,
                Value::Bool(true) => Jitter::PlusMinus { factor: saved.get("jitter_factor")?.as_f64()? },
                other => match other.as_str()? {
                    "full" => Jitter::Full,
                    "equal" => Jitter::Equal,
                    "decorrelated" => Jitter::Decorrelated,
                    _ => return None,
                },
            },
            retry_budget: duration("retry_budget"),
            max_retry_after: duration("max_retry_after")?,
        })
    }

    /// The delay of the strategy before this retry, if integers give it.
    pub(super) fn computed(&self, retry: u32) -> Option<Duration> {
        let first = self.initial_delay.as_nanos();
        let earlier = retry.saturating_sub(1);
        let nanos = match &self.backoff {
            Backoff::Fixed => first,
            Backoff::Linear { increment } => first + increment.as_nanos() * u128::from(earlier),
            Backoff::Fibonacci => first.saturating_mul(fibonacci(retry)),
            Backoff::Exponential { base } if (base - 2.0).abs() < f64::EPSILON => {
                first.saturating_mul(1 << earlier.min(64))
            }
            Backoff::Custom { delays } => {
                let index = usize::try_from(earlier).ok()?;
                delays.get(index).unwrap_or(&self.max_delay).as_nanos()
            }
            Backoff::Exponential { .. } => return None,
        };
        Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }

    /// Whether a drawn delay lies in the band of its jitter.
    pub(super) fn may_draw(&self, capped: Duration, drawn: Duration) -> bool {
        match self.jitter {
            Jitter::Full => drawn <= capped,
            Jitter::Equal => capped / 2 <= drawn && drawn <= capped,
            Jitter::PlusMinus { factor } => {
                // The band is rounded to nanoseconds, and floating point to 53 bits.
                let reach = capped.as_secs_f64() * factor * (1.0 + 1e-12) + 1e-9;
                capped.abs_diff(drawn).as_secs_f64() <= reach && drawn <= LONGEST
            }
            _ => drawn == capped,
        }
    }
}

fn duration(saved: &Value) -> Option<Duration> {
    parse_duration(saved.as_str()?).ok()
}

fn backoff(saved: &Value) -> Option<Backoff> {
    match saved.as_str() {
        Some("fixed") => return Some(Backoff::Fixed),
        Some("fibonacci") => return Some(Backoff::Fibonacci),
        _ => {}
    }
    let (name, settings) = saved.as_object()?.iter().next()?;
    Some(match name.as_str() {
        "linear" => Backoff::Linear { increment: duration(settings.get("increment")?)? },
        "exponential" => Backoff::Exponential { base: settings.get("base")?.as_f64()? },
        "custom" => {
            let delays = settings.get("delays")?.as_array()?;
            let delays: Option<Vec<Duration>> = delays.iter().map(duration).collect();
            Backoff::Custom { delays: delays?.into() }
        }
        _ => return None,
    })
}

/// The n-th Fibonacci number, or a number above 64 bits.
fn fibonacci(n: u32) -> u128 {
    let (last, _) = (1..n.min(100)).fold((1, 0), |(last, before), _| (last + before, last));
    last
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use undaunted_policy::{JitterMode, RetryConfig};

    use super::*;

    fn read(config: &RetryConfig) -> ExpectedTerms {
        let saved = serde_json::to_value(config.build().unwrap()).unwrap();
        ExpectedTerms::read(&saved).unwrap()
    }

    #[test]
    fn a_saved_policy_is_read_without_the_policys_help() {
        let terms = read(
            &RetryConfig::linear(Duration::from_secs(2))
                .unlimited_attempts()
                .jitter(JitterMode::Equal)
                .retry_budget(Duration::from_secs(90)),
        );
        assert_eq!(terms.retries, None);
        assert_eq!(terms.jitter, Jitter::Equal);
        assert_eq!(terms.retry_budget, Some(Duration::from_secs(90)));
        assert_eq!(terms.max_retry_after, Policy::DEFAULT_MAX_RETRY_AFTER);
        assert_eq!(terms.computed(3), Some(Duration::from_secs(5)));
    }

    #[test]
    fn a_form_with_a_setting_missing_promises_nothing() {
        assert_eq!(ExpectedTerms::read(&json!({"attempts": 3})), None);
    }

    #[test]
    fn the_slow_way_ends_at_the_longest_duration() {
        for config in [RetryConfig::fibonacci(), RetryConfig::exponential(2.0)] {
            let terms = read(&config);
            assert_eq!(terms.computed(u32::MAX), Some(LONGEST));
            assert_eq!(terms.computed(4).map(|wait| wait.as_secs() % 5), Some(3));
        }
        assert_eq!(read(&RetryConfig::exponential(1.5)).computed(1), None);
    }
}
