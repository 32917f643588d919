//! The laws of a verdict and of a plan.
//!
//! Facts in, the first broken law out as a sentence. The policy is not asked; `tests` break every law with
//! made-up facts.

use std::fmt::Debug;
use std::time::Duration;

use undaunted_policy::{
    Decision, Delay, FailureClass, Jitter, PlannedRetry, PoolBalance, Reason, RetryProgress, RetryState,
    RuleAction, Timestamp, Verdict,
};

use super::byte_source::LONGEST;
use super::expected::ExpectedTerms;

#[cfg(test)]
mod tests;

pub(super) type Law = (&'static str, bool);

/// Panics, which a fuzzer reports, unless the law holds.
pub(super) fn uphold(law: &str, holds: bool, facts: &dyn Debug) {
    assert!(holds, "broken law: {law}\n{facts:#?}");
}

#[derive(Clone, Copy)]
pub(super) struct VerdictObservation<'a> {
    pub(super) terms: &'a ExpectedTerms,
    pub(super) state: RetryState,
    pub(super) retry_after: Option<Duration>,
    pub(super) now: Timestamp,
    pub(super) verdict: Verdict,
}

impl VerdictObservation<'_> {
    pub(super) fn broken(&self) -> Option<&'static str> {
        let decision = match self.verdict.decision {
            Decision::Retry { at, wait } => self.retry(at, wait),
            Decision::Hold => self.hold(),
            Decision::Stop { reason, then } => self.stop(reason, then),
        };
        let delay = self.verdict.arithmetic.delay;
        let delay = delay.map_or_else(Vec::new, |delay| self.delay(delay));
        let laws = decision.into_iter().chain(self.arithmetic()).chain(delay);
        first_broken(laws)
    }

    fn retry(&self, at: Timestamp, wait: Duration) -> Vec<Law> {
        let before = self.state.progress;
        let asked = self.retry_after.unwrap_or_default();
        let drawn = self.verdict.arithmetic.delay.map(|delay| delay.drawn);
        let spent = before.spent.saturating_add(wait);
        let charged =
            RetryProgress { retries: before.retries.saturating_add(1), spent, previous: Some(wait) };
        let budget = self.terms.retry_budget;
        let deadline = self.state.deadline;
        vec![
            ("a retry is one of the attempts", self.attempts_left()),
            ("the delays fit the budget", budget.is_none_or(|budget| spent <= budget)),
            ("no retry is made before Retry-After", wait >= asked),
            ("a Retry-After above its limit is not waited for", asked <= self.terms.max_retry_after),
            ("a wait is the drawn delay or Retry-After", drawn.is_some_and(|drawn| wait == drawn.max(asked))),
            ("a retry is due when its wait is over", at == self.now.after(wait)),
            ("a retry is due by the deadline", deadline.is_none_or(|deadline| at <= deadline)),
            ("a retry has a place in the pool", self.place_in_pool()),
            ("a permanent failure is retried by rule only", self.may_be_retried()),
            ("a retry is charged once and in full", self.after() == charged),
        ]
    }

    fn hold(&self) -> Vec<Law> {
        let before = self.state.progress;
        let charged = RetryProgress { retries: before.retries.saturating_add(1), ..before };
        let deadline = self.state.deadline;
        vec![
            ("a held start is one of the attempts", self.attempts_left()),
            ("nothing is held after the deadline", deadline.is_none_or(|deadline| self.now <= deadline)),
            ("a held start has a place in the pool", self.place_in_pool()),
            ("only a rule holds", self.verdict.rule.is_some()),
            ("a hold costs an attempt and no delay", self.after() == charged),
        ]
    }

    fn stop(&self, reason: Reason, then: RuleAction) -> Vec<Law> {
        let ordinary = then == RuleAction::Stop;
        let final_word = !matches!(then, RuleAction::Retry | RuleAction::Hold);
        vec![
            ("a stop has the reason it gives", self.justifies(reason)),
            ("a stop is the end", final_word),
            ("only a rule skips or dead-letters", ordinary || reason == Reason::Rule),
            ("a stop costs nothing", self.after() == self.state.progress),
        ]
    }

    fn justifies(&self, reason: Reason) -> bool {
        let (terms, before) = (self.terms, self.state.progress);
        let asked = self.retry_after.unwrap_or_default();
        let wait = self.verdict.arithmetic.wait();
        match reason {
            Reason::Rule => self.verdict.rule.is_some(),
            Reason::Permanent => self.verdict.class == FailureClass::Permanent && self.verdict.rule.is_none(),
            Reason::Attempts => !self.attempts_left(),
            Reason::RetryAfterExceedsLimit => asked > terms.max_retry_after,
            Reason::RetryBudget => {
                terms.retry_budget.is_some_and(|budget| before.spent.saturating_add(wait) > budget)
            }
            Reason::Deadline => {
                let due = self.now.after(wait);
                self.state.deadline.is_some_and(|deadline| due > deadline)
            }
            Reason::JobBudgetExhausted => self.in_pool(|pool| pool.consumed >= pool.total),
            Reason::WorkflowBudgetExhausted => self.in_pool(|pool| pool.item_consumed >= pool.per_item),
            // The other reasons are given by the engine, never by a verdict.
            _ => false,
        }
    }

    /// The question is part of the answer, so that a verdict can be explained later.
    fn arithmetic(&self) -> Vec<Law> {
        let (sum, before) = (&self.verdict.arithmetic, self.state.progress);
        let limits = (sum.retries_allowed, sum.retry_budget, sum.max_retry_after);
        let terms = self.terms;
        let expected = (terms.retries, terms.retry_budget, terms.max_retry_after);
        vec![
            (
                "the arithmetic starts from the state",
                sum.spent_before == before.spent
                    && sum.retry == before.retries.saturating_add(1)
                    && (sum.deadline, sum.pool) == (self.state.deadline, self.state.pool),
            ),
            ("the arithmetic names the limits in force", limits == expected),
        ]
    }

    fn delay(&self, delay: Delay) -> Vec<Law> {
        let mut laws = delay_laws(self.terms, delay);
        if self.terms.jitter == Jitter::Decorrelated {
            let initial = self.terms.initial_delay;
            let previous = self.state.progress.previous.unwrap_or(initial);
            let most = previous.saturating_mul(3).clamp(initial, LONGEST);
            laws.push((
                "a decorrelated delay lies between the initial and three times the last",
                (initial..=most).contains(&delay.computed),
            ));
        } else {
            laws.push(strategy_law(self.terms, self.verdict.arithmetic.retry, delay));
        }
        laws
    }

    fn after(&self) -> RetryProgress {
        self.verdict.progress(self.state.progress)
    }

    fn attempts_left(&self) -> bool {
        let made = self.state.progress.retries;
        self.terms.retries.is_none_or(|most| made < most)
    }

    fn in_pool(&self, holds: impl FnOnce(PoolBalance) -> bool) -> bool {
        self.state.pool.is_some_and(holds)
    }

    fn place_in_pool(&self) -> bool {
        !self.in_pool(|pool| pool.consumed >= pool.total || pool.item_consumed >= pool.per_item)
    }

    fn may_be_retried(&self) -> bool {
        self.verdict.class != FailureClass::Permanent || self.verdict.rule.is_some()
    }
}

/// The first law that a plan breaks.
pub(super) fn broken_by_plan(terms: &ExpectedTerms, plan: &[PlannedRetry]) -> Option<&'static str> {
    let mut spent = Duration::ZERO;
    let laws = plan.iter().zip(1_u32..).flat_map(|(planned, number)| {
        spent += planned.delay.drawn;
        let mut laws = delay_laws(terms, planned.delay);
        laws.extend([
            ("a plan leaves no retry out", planned.retry == number),
            ("a plan is no longer than its attempts", terms.retries.is_none_or(|most| number <= most)),
            ("a plan adds its delays up", planned.spent == spent),
            ("a plan fits its budget", terms.retry_budget.is_none_or(|budget| spent <= budget)),
        ]);
        if terms.jitter != Jitter::Decorrelated {
            laws.push(strategy_law(terms, number, planned.delay));
        }
        laws
    });
    first_broken(laws)
}

fn delay_laws(terms: &ExpectedTerms, delay: Delay) -> Vec<Law> {
    vec![
        ("before jitter no delay passes its cap", delay.capped == delay.computed.min(terms.max_delay)),
        ("a drawn delay lies in the band of its jitter", terms.may_draw(delay.capped, delay.drawn)),
    ]
}

fn strategy_law(terms: &ExpectedTerms, retry: u32, delay: Delay) -> Law {
    let computed = terms.computed(retry);
    ("a strategy gives its documented series", computed.is_none_or(|computed| computed == delay.computed))
}

pub(super) fn first_broken(laws: impl IntoIterator<Item = Law>) -> Option<&'static str> {
    let mut laws = laws.into_iter();
    laws.find_map(|(law, kept)| (!kept).then_some(law))
}
