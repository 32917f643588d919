//! Drawn retry settings.

use std::time::Duration;

use super::super::retry::{Attempts, Backoff, FailureKind, Jitter, Retry, Rule, Then, When};
use super::table::Table;

const KINDS: [FailureKind; 4] =
    [FailureKind::Network, FailureKind::Timeout, FailureKind::ServerError, FailureKind::RateLimit];

impl Table<'_> {
    /// The `retry_config` of a command: everything may be in it.
    pub(super) fn retry(&mut self, is_call: bool, may_hold: bool) -> Retry {
        let mut retry = self.terms();
        if self.falls(12) {
            self.unlimited(&mut retry);
        }
        let unlimited = retry.attempts == Some(Attempts::Unlimited);
        if self.falls(6) {
            retry.retry_on = self.kinds();
        }
        if is_call {
            if self.falls(40) {
                retry.statuses = vec![429];
            }
            retry.max_retry_after = self.time_in(20, 1500, 6000);
        }
        if self.falls(30) {
            let rules = self.count(1, 2);
            retry.rules = (0..rules).map(|_| self.rule(is_call, may_hold && !unlimited)).collect();
        }
        retry
    }

    /// A `retry_config` further out: some of the settings.
    pub(super) fn outer_retry(&mut self) -> Retry {
        let mut retry = self.terms();
        if self.falls(40) {
            retry.attempts = None;
        }
        if self.falls(40) {
            retry.backoff = None;
        }
        if self.falls(40) {
            retry.initial_delay = None;
        }
        retry
    }

    fn terms(&mut self) -> Retry {
        let attempts = self.falls(80).then(|| Attempts::Times(self.count(0, 4)));
        let backoff = self.falls(75).then(|| self.backoff());
        let initial_delay = if backoff == Some(Backoff::Exponential(3)) {
            // So that no power of it is a broken number of milliseconds.
            Some(Duration::from_millis(self.die.between(1, 5).saturating_mul(256)))
        } else {
            self.time_in(85, 20, 2500)
        };
        Retry {
            attempts,
            backoff,
            initial_delay,
            max_delay: self.time_in(35, 700, 5000),
            jitter: self.falls(30).then(|| self.jitter()),
            budget: self.time_in(25, 500, 12_000),
            ..Retry::default()
        }
    }

    fn backoff(&mut self) -> Backoff {
        match self.die.below(6) {
            0 => Backoff::Fixed,
            1 => Backoff::Linear(self.time(50, 1500)),
            2 => Backoff::Fibonacci,
            3 => {
                let count = self.die.below(4);
                Backoff::Custom((0..count).map(|_| self.time(20, 3000)).collect())
            }
            _ => Backoff::Exponential(self.one_of(&[4, 4, 6, 3], 4)),
        }
    }

    fn jitter(&mut self) -> Jitter {
        match self.die.below(5) {
            0 => Jitter::None,
            1 => Jitter::Around(self.one_of(&[30, 10, 100, 0], 30)),
            2 => Jitter::Full,
            3 => Jitter::Equal,
            _ => Jitter::Decorrelated,
        }
    }

    /// As many retries as a delay budget leaves: a handful.
    fn unlimited(&mut self, retry: &mut Retry) {
        let first = self.time(200, 1500);
        let most = first.saturating_mul(self.count(1, 6));
        retry.attempts = Some(Attempts::Unlimited);
        retry.initial_delay = Some(first);
        retry.backoff = Some(if self.falls(50) { Backoff::Fixed } else { Backoff::Fibonacci });
        retry.max_delay = Some(first.saturating_mul(3));
        retry.budget = Some(most.saturating_add(self.time(0, 100)));
    }

    fn kinds(&mut self) -> Vec<FailureKind> {
        let mut kinds: Vec<FailureKind> = KINDS.into_iter().filter(|_| self.falls(50)).collect();
        if kinds.is_empty() {
            kinds.push(FailureKind::Timeout);
        }
        kinds
    }

    fn rule(&mut self, is_call: bool, may_hold: bool) -> Rule {
        let when = match self.die.below(10) {
            0 => When::Always,
            1 => When::Kind(FailureKind::Timeout),
            2..=5 if is_call => When::Status(self.one_of(&[503, 500, 404, 429], 503)),
            2..=3 => When::Signal(9),
            6 if is_call => When::Kind(self.one_of(&KINDS, FailureKind::Network)),
            _ if is_call => When::Status(503),
            _ => When::Exit(self.one_of(&[1, 2, 3, 127], 3)),
        };
        let then = match self.die.below(6) {
            0 => Then::Stop,
            1 => Then::Skip,
            2 => Then::DeadLetter,
            3 if may_hold => Then::Hold,
            4 => Then::Retry(None),
            _ => Then::Retry(Some(Box::new(Retry {
                attempts: Some(Attempts::Times(self.count(0, 5))),
                initial_delay: self.time_in(60, 100, 2000),
                backoff: self.falls(40).then_some(Backoff::Fixed),
                budget: self.time_in(30, 500, 6000),
                ..Retry::default()
            }))),
        };
        Rule { when, then }
    }
}
