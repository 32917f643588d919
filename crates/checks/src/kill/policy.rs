//! A drawn retry policy, and what SEMANTICS says its delays are.
//!
//! The arithmetic is written once more here, from the document and not from the product, so that a
//! journal can be held against it.

use serde_json::{Value, json};

use crate::die::Die;

/// How delays grow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Growth {
    Fixed,
    Linear(u64),
    Exponential,
    Fibonacci,
    Custom(Vec<u64>),
}

/// When a command is tried again. Times are in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Retries after the first attempt.
    pub(crate) retries: u64,
    growth: Growth,
    first: u64,
    cap: u64,
    jitter: bool,
    pub(crate) budget: Option<u64>,
}

/// How far `jitter: true` spreads, in percent.
const SPREAD: u64 = 40;

impl Policy {
    pub(crate) const fn none() -> Self {
        Self { retries: 0, growth: Growth::Fixed, first: 0, cap: 0, jitter: false, budget: None }
    }

    pub(crate) fn draw(die: &mut Die) -> Self {
        let growth = match die.below(5) {
            0 => Growth::Fixed,
            1 => Growth::Linear(die.between(5, 60)),
            2 => Growth::Exponential,
            3 => Growth::Fibonacci,
            _ => Growth::Custom((0..die.between(1, 3)).map(|_| die.between(5, 150)).collect()),
        };
        let budget = die.falls(1, 3);
        Self {
            retries: die.between(1, 4),
            growth,
            first: die.between(10, 100),
            cap: die.between(80, 250),
            jitter: die.falls(1, 3),
            budget: budget.then(|| die.between(60, 600)),
        }
    }

    /// As a workflow says it.
    pub(crate) fn json(&self) -> Value {
        let ms = |time: u64| format!("{time}ms");
        let backoff = match &self.growth {
            Growth::Fixed => json!("fixed"),
            Growth::Linear(more) => json!({"linear": {"increment": ms(*more)}}),
            Growth::Exponential => json!("exponential"),
            Growth::Fibonacci => json!("fibonacci"),
            Growth::Custom(delays) => {
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

    /// The shortest and the longest delay before a retry; those of a flow step are in milliseconds too.
    pub(crate) fn delay(&self, retry: u64) -> (u64, u64) {
        let steps = retry.saturating_sub(1);
        let grown = match &self.growth {
            Growth::Fixed => self.first,
            Growth::Linear(more) => self.first.saturating_add(steps.saturating_mul(*more)),
            Growth::Exponential => {
                let doublings = u32::try_from(steps).unwrap_or(u32::MAX);
                self.first.saturating_mul(2_u64.saturating_pow(doublings))
            }
            Growth::Fibonacci => {
                let (mut this, mut next) = (1_u64, 1_u64);
                for _ in 0..steps {
                    (this, next) = (next, this.saturating_add(next));
                }
                self.first.saturating_mul(this)
            }
            Growth::Custom(delays) => {
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

    /// The policy of a flow step, of fixed or doubling delays.
    pub(crate) fn of_flow(retries: u64, first: u64, cap: u64, doubles: bool) -> Self {
        Self {
            retries,
            first,
            cap,
            growth: if doubles { Growth::Exponential } else { Growth::Fixed },
            ..Self::none()
        }
    }

    /// As the step of a flow says it.
    pub(crate) fn work_config(&self) -> Value {
        let kind = if self.growth == Growth::Fixed { "fixed" } else { "exponential" };
        json!({
            "max_retries": self.retries, "backoff": self.first, "max_backoff": self.cap,
            "backoff_type": kind,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(growth: Growth) -> Policy {
        Policy { first: 10, cap: 45, growth, ..Policy::none() }
    }

    #[test]
    fn delays_are_those_of_the_document() {
        let delays = |growth| {
            let policy = policy(growth);
            [1, 2, 3, 4].map(|retry| policy.delay(retry).0)
        };
        assert_eq!(delays(Growth::Fixed), [10, 10, 10, 10]);
        assert_eq!(delays(Growth::Linear(15)), [10, 25, 40, 45]);
        assert_eq!(delays(Growth::Exponential), [10, 20, 40, 45]);
        assert_eq!(delays(Growth::Fibonacci), [10, 10, 20, 30]);
        assert_eq!(delays(Growth::Custom(vec![7, 99])), [7, 45, 45, 45]);
    }

    #[test]
    fn jitter_spreads_both_ways() {
        let jittered = Policy { jitter: true, ..policy(Growth::Fixed) };
        assert_eq!(jittered.delay(1), (6, 14));
    }
}
