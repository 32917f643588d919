//! A generated retry policy, and the delays that SEMANTICS gives it.
//!
//! A second implementation of the arithmetic, written from the document and not from the product.

use serde_json::{Value, json};

use crate::random::SeededRandom;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DrawnBackoff {
    Fixed,
    Linear(u64),
    Exponential,
    Fibonacci,
    Custom(Vec<u64>),
}

/// When a command is retried. Times are in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DrawnPolicy {
    /// Retries after the first attempt.
    pub(crate) retries: u64,
    growth: DrawnBackoff,
    first: u64,
    cap: u64,
    jitter: bool,
    pub(crate) budget: Option<u64>,
}

/// The spread of `jitter: true`, in percent.
const SPREAD: u64 = 40;

impl DrawnPolicy {
    pub(crate) const fn none() -> Self {
        Self { retries: 0, growth: DrawnBackoff::Fixed, first: 0, cap: 0, jitter: false, budget: None }
    }

    pub(crate) fn draw(random: &mut SeededRandom) -> Self {
        let growth = match random.below(5) {
            0 => DrawnBackoff::Fixed,
            1 => DrawnBackoff::Linear(random.between(5, 60)),
            2 => DrawnBackoff::Exponential,
            3 => DrawnBackoff::Fibonacci,
            _ => DrawnBackoff::Custom((0..random.between(1, 3)).map(|_| random.between(5, 150)).collect()),
        };
        let budget = random.chance(1, 3);
        Self {
            retries: random.between(1, 4),
            growth,
            first: random.between(10, 100),
            cap: random.between(80, 250),
            jitter: random.chance(1, 3),
            budget: budget.then(|| random.between(60, 600)),
        }
    }

    /// The `retry_config`.
    pub(crate) fn json(&self) -> Value {
        let ms = |time: u64| format!("{time}ms");
        let backoff = match &self.growth {
            DrawnBackoff::Fixed => json!("fixed"),
            DrawnBackoff::Linear(more) => json!({"linear": {"increment": ms(*more)}}),
            DrawnBackoff::Exponential => json!("exponential"),
            DrawnBackoff::Fibonacci => json!("fibonacci"),
            DrawnBackoff::Custom(delays) => {
                let delays: Vec<String> = delays.iter().map(|it| ms(*it)).collect();
                json!({"custom": {"delays": delays}})
            }
        };
        let mut config = json!({
            "attempts": self.retries, "backoff": backoff,
            "initial_delay": ms(self.first), "max_delay": ms(self.cap),
        });
        if let Some(config) = config.as_object_mut() {
            if self.jitter {
                config.insert("jitter".to_owned(), json!(true));
                config.insert("jitter_factor".to_owned(), json!(0.4));
            }
            if let Some(budget) = self.budget {
                config.insert("retry_budget".to_owned(), json!(ms(budget)));
            }
        }
        config
    }

    /// The shortest and the longest delay before a retry.
    pub(crate) fn delay(&self, retry: u64) -> (u64, u64) {
        let steps = retry.saturating_sub(1);
        let grown = match &self.growth {
            DrawnBackoff::Fixed => self.first,
            DrawnBackoff::Linear(more) => self.first.saturating_add(steps.saturating_mul(*more)),
            DrawnBackoff::Exponential => {
                let doublings = u32::try_from(steps).unwrap_or(u32::MAX);
                self.first.saturating_mul(2_u64.saturating_pow(doublings))
            }
            DrawnBackoff::Fibonacci => {
                let (mut this, mut next) = (1_u64, 1_u64);
                for _ in 0..steps {
                    (this, next) = (next, this.saturating_add(next));
                }
                self.first.saturating_mul(this)
            }
            DrawnBackoff::Custom(delays) => {
                let place = usize::try_from(steps).unwrap_or(usize::MAX);
                delays.get(place).copied().unwrap_or(self.cap)
            }
        };
        let capped = grown.min(self.cap);
        if !self.jitter {
            return (capped, capped);
        }
        let part = |percent: u64| capped.saturating_mul(percent);
        let least = part(100_u64.saturating_sub(SPREAD)) / 100;
        let most = part(100_u64.saturating_add(SPREAD)).div_ceil(100);
        (least, most)
    }

    /// The policy of a flow step, with fixed or doubling delays.
    pub(crate) fn of_flow(retries: u64, first: u64, cap: u64, doubles: bool) -> Self {
        Self {
            retries,
            first,
            cap,
            growth: if doubles { DrawnBackoff::Exponential } else { DrawnBackoff::Fixed },
            ..Self::none()
        }
    }

    /// The `work_config` of a flow step.
    pub(crate) fn work_config(&self) -> Value {
        let kind = if self.growth == DrawnBackoff::Fixed { "fixed" } else { "exponential" };
        json!({
            "max_retries": self.retries, "backoff": self.first, "max_backoff": self.cap,
            "backoff_type": kind,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(growth: DrawnBackoff) -> DrawnPolicy {
        DrawnPolicy { first: 10, cap: 45, growth, ..DrawnPolicy::none() }
    }

    #[test]
    fn delays_are_those_of_the_document() {
        let delays = |growth| {
            let policy = policy(growth);
            [1, 2, 3, 4].map(|retry| policy.delay(retry).0)
        };
        assert_eq!(delays(DrawnBackoff::Fixed), [10, 10, 10, 10]);
        assert_eq!(delays(DrawnBackoff::Linear(15)), [10, 25, 40, 45]);
        assert_eq!(delays(DrawnBackoff::Exponential), [10, 20, 40, 45]);
        assert_eq!(delays(DrawnBackoff::Fibonacci), [10, 10, 20, 30]);
        assert_eq!(delays(DrawnBackoff::Custom(vec![7, 99])), [7, 45, 45, 45]);
    }

    #[test]
    fn jitter_spreads_both_ways() {
        let jittered = DrawnPolicy { jitter: true, ..policy(DrawnBackoff::Fixed) };
        assert_eq!(jittered.delay(1), (6, 14));
    }
}
