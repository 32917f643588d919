//! Generated retry settings.

use std::time::Duration;

use super::super::retry::{
    CaseAction, CaseAttempts, CaseBackoff, CaseCondition, CaseFailureKind, CaseJitter, CaseRetry, CaseRule,
};
use super::CaseGenerator;

const KINDS: [CaseFailureKind; 4] = [
    CaseFailureKind::Network,
    CaseFailureKind::Timeout,
    CaseFailureKind::ServerError,
    CaseFailureKind::RateLimit,
];

impl CaseGenerator<'_> {
    /// The `retry_config` of a command, with any setting.
    pub(super) fn retry(&mut self, is_call: bool, may_hold: bool) -> CaseRetry {
        let mut retry = self.terms();
        if self.chance(12) {
            self.unlimited(&mut retry);
        }
        let unlimited = retry.attempts == Some(CaseAttempts::Unlimited);
        if self.chance(6) {
            retry.retry_on = self.kinds();
        }
        if is_call {
            if self.chance(40) {
                retry.statuses = vec![429];
            }
            retry.max_retry_after = self.time_in(20, 1500, 6000);
        }
        if self.chance(30) {
            let rules = self.count(1, 2);
            retry.rules = (0..rules).map(|_| self.rule(is_call, may_hold && !unlimited)).collect();
        }
        retry
    }

    /// A `retry_config` further out, with some settings.
    pub(super) fn outer_retry(&mut self) -> CaseRetry {
        let mut retry = self.terms();
        if self.chance(40) {
            retry.attempts = None;
        }
        if self.chance(40) {
            retry.backoff = None;
        }
        if self.chance(40) {
            retry.initial_delay = None;
        }
        retry
    }

    fn terms(&mut self) -> CaseRetry {
        let attempts = self.chance(80).then(|| CaseAttempts::Times(self.count(0, 4)));
        let backoff = self.chance(75).then(|| self.backoff());
        let initial_delay = if backoff == Some(CaseBackoff::Exponential(3)) {
            // So that every power is a whole number of milliseconds.
            Some(Duration::from_millis(self.random.between(1, 5).saturating_mul(256)))
        } else {
            self.time_in(85, 20, 2500)
        };
        CaseRetry {
            attempts,
            backoff,
            initial_delay,
            max_delay: self.time_in(35, 700, 5000),
            jitter: self.chance(30).then(|| self.jitter()),
            budget: self.time_in(25, 500, 12_000),
            ..CaseRetry::default()
        }
    }

    fn backoff(&mut self) -> CaseBackoff {
        match self.random.below(6) {
            0 => CaseBackoff::Fixed,
            1 => CaseBackoff::Linear(self.time(50, 1500)),
            2 => CaseBackoff::Fibonacci,
            3 => {
                let count = self.random.below(4);
                CaseBackoff::Custom((0..count).map(|_| self.time(20, 3000)).collect())
            }
            _ => CaseBackoff::Exponential(self.one_of(&[4, 4, 6, 3], 4)),
        }
    }

    fn jitter(&mut self) -> CaseJitter {
        match self.random.below(5) {
            0 => CaseJitter::None,
            1 => CaseJitter::Around(self.one_of(&[30, 10, 100, 0], 30)),
            2 => CaseJitter::Full,
            3 => CaseJitter::Equal,
            _ => CaseJitter::Decorrelated,
        }
    }

    /// Unlimited retries, of which a delay budget leaves a handful.
    fn unlimited(&mut self, retry: &mut CaseRetry) {
        let first = self.time(200, 1500);
        let most = first.saturating_mul(self.count(1, 6));
        retry.attempts = Some(CaseAttempts::Unlimited);
        retry.initial_delay = Some(first);
        retry.backoff = Some(if self.chance(50) { CaseBackoff::Fixed } else { CaseBackoff::Fibonacci });
        retry.max_delay = Some(first.saturating_mul(3));
        retry.budget = Some(most.saturating_add(self.time(0, 100)));
    }

    fn kinds(&mut self) -> Vec<CaseFailureKind> {
        let mut kinds: Vec<CaseFailureKind> = KINDS.into_iter().filter(|_| self.chance(50)).collect();
        if kinds.is_empty() {
            kinds.push(CaseFailureKind::Timeout);
        }
        kinds
    }

    fn rule(&mut self, is_call: bool, may_hold: bool) -> CaseRule {
        let when = match self.random.below(10) {
            0 => CaseCondition::Always,
            1 => CaseCondition::Kind(CaseFailureKind::Timeout),
            2..=5 if is_call => CaseCondition::Status(self.one_of(&[503, 500, 404, 429], 503)),
            2..=3 => CaseCondition::Signal(9),
            6 if is_call => CaseCondition::Kind(self.one_of(&KINDS, CaseFailureKind::Network)),
            _ if is_call => CaseCondition::Status(503),
            _ => CaseCondition::Exit(self.one_of(&[1, 2, 3, 127], 3)),
        };
        let then = match self.random.below(6) {
            0 => CaseAction::Stop,
            1 => CaseAction::Skip,
            2 => CaseAction::DeadLetter,
            3 if may_hold => CaseAction::Hold,
            4 => CaseAction::Retry(None),
            _ => CaseAction::Retry(Some(Box::new(CaseRetry {
                attempts: Some(CaseAttempts::Times(self.count(0, 5))),
                initial_delay: self.time_in(60, 100, 2000),
                backoff: self.chance(40).then_some(CaseBackoff::Fixed),
                budget: self.time_in(30, 500, 6000),
                ..CaseRetry::default()
            }))),
        };
        CaseRule { when, then }
    }
}
