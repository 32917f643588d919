//! A generated retry policy as a workflow spells it. Its delays are those of the simulator's reference model.

use std::time::Duration;

use serde_json::{Value, json};

use crate::random::SeededRandom;
use crate::simulate::case::{CaseAttempts, CaseBackoff, CaseJitter, CaseRetry};
use crate::simulate::model::delay_before;

/// When a command is retried. Times are in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DrawnPolicy {
    /// Retries after the first attempt.
    pub(crate) retries: u64,
    pub(crate) budget: Option<u64>,
    first: u64,
    cap: u64,
    backoff: CaseBackoff,
    jitter: CaseJitter,
}

impl DrawnPolicy {
    pub(crate) const fn none() -> Self {
        let (backoff, jitter) = (CaseBackoff::Fixed, CaseJitter::None);
        Self { retries: 0, budget: None, first: 0, cap: 0, backoff, jitter }
    }

    pub(crate) fn draw(random: &mut SeededRandom) -> Self {
        let mut time = |least, most| Duration::from_millis(random.between(least, most));
        let times = [time(5, 60), time(5, 150), time(5, 150), time(5, 150)];
        let backoff = match random.below(5) {
            0 => CaseBackoff::Fixed,
            1 => CaseBackoff::Linear(times[0]),
            2 => CaseBackoff::Exponential(4),
            3 => CaseBackoff::Fibonacci,
            _ => CaseBackoff::Custom(times[..=random.below(3)].to_vec()),
        };
        let (has_budget, has_jitter) = (random.chance(1, 3), random.chance(1, 3));
        Self {
            retries: random.between(1, 4),
            budget: has_budget.then(|| random.between(60, 600)),
            first: random.between(10, 100),
            cap: random.between(80, 250),
            backoff,
            jitter: if has_jitter { CaseJitter::Around(40) } else { CaseJitter::None },
        }
    }

    /// The `retry_config`.
    pub(crate) fn json(&self) -> Value {
        let ms = |time: &Duration| format!("{}ms", time.as_millis());
        let backoff = match &self.backoff {
            CaseBackoff::Fixed => json!("fixed"),
            CaseBackoff::Linear(by) => json!({"linear": {"increment": ms(by)}}),
            CaseBackoff::Exponential(_) => json!("exponential"),
            CaseBackoff::Fibonacci => json!("fibonacci"),
            CaseBackoff::Custom(delays) => {
                json!({"custom": {"delays": delays.iter().map(ms).collect::<Vec<_>>()}})
            }
        };
        let mut config = json!({
            "attempts": self.retries, "backoff": backoff,
            "initial_delay": format!("{}ms", self.first), "max_delay": format!("{}ms", self.cap),
        });
        if let CaseJitter::Around(_) = self.jitter {
            config["jitter"] = json!(true);
            config["jitter_factor"] = json!(0.4);
        }
        if let Some(budget) = self.budget {
            config["retry_budget"] = json!(format!("{budget}ms"));
        }
        config
    }

    /// The shortest and the longest delay before a retry.
    pub(crate) fn delay(&self, retry: u64) -> (u64, u64) {
        let config = CaseRetry {
            attempts: Some(CaseAttempts::Unlimited),
            backoff: Some(self.backoff.clone()),
            initial_delay: Some(Duration::from_millis(self.first)),
            max_delay: Some(Duration::from_millis(self.cap)),
            jitter: Some(self.jitter),
            ..CaseRetry::default()
        };
        let range = delay_before(&config, u32::try_from(retry).unwrap_or(u32::MAX));
        let millis = |micros: u128| u64::try_from(micros).unwrap_or(u64::MAX);
        (millis(range.least.as_micros() / 1000), millis(range.most.as_micros().div_ceil(1000)))
    }

    /// The policy of a flow step, with fixed or doubling delays.
    pub(crate) fn of_flow(retries: u64, first: u64, cap: u64, doubles: bool) -> Self {
        let backoff = if doubles { CaseBackoff::Exponential(4) } else { CaseBackoff::Fixed };
        Self { retries, first, cap, backoff, ..Self::none() }
    }

    /// The `work_config` of a flow step.
    pub(crate) fn work_config(&self) -> Value {
        let kind = if self.backoff == CaseBackoff::Fixed { "fixed" } else { "exponential" };
        json!({
            "max_retries": self.retries, "backoff": self.first, "max_backoff": self.cap,
            "backoff_type": kind,
        })
    }
}
