//! On which terms a command is retried: every place that says something, the closest first.

use std::time::Duration;

use crate::simulate::case::{
    Attempts, Backoff, FailureKind, Jitter, Retry, Rule, Then, WorkBackoff, WorkConfig,
};

/// The settings that hold for a command, defaults included.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) attempts: Attempts,
    pub(super) growth: Growth,
    pub(super) initial_delay: Duration,
    pub(super) max_delay: Duration,
    pub(super) jitter: Jitter,
    pub(super) budget: Option<Duration>,
    pub(super) retry_on: Vec<FailureKind>,
    pub(super) statuses: Vec<u16>,
    pub(super) max_retry_after: Duration,
    pub(super) rules: Vec<Rule>,
}

/// How delays grow, in either dialect.
#[derive(Clone, Debug)]
pub(super) enum Growth {
    Of(Backoff),
    /// The first delay times the number of the retry.
    Multiples,
}

impl Terms {
    /// What nobody said anything about: it runs once.
    pub(super) fn once() -> Self {
        Self { attempts: Attempts::Times(0), ..Self::usual() }
    }

    /// The defaults inside a `retry_config`.
    pub(super) fn usual() -> Self {
        Self {
            attempts: Attempts::Times(3),
            growth: Growth::Of(Backoff::Exponential(4)),
            initial_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(30),
            jitter: Jitter::None,
            budget: None,
            retry_on: Vec::new(),
            statuses: Vec::new(),
            max_retry_after: Duration::from_mins(5),
            rules: Vec::new(),
        }
    }

    /// The closest place first; it runs once if there is none, unless retries are asked for anyway.
    pub(super) fn merged(places: &[Option<&Retry>], asked_for: bool) -> Self {
        if !asked_for && places.iter().all(Option::is_none) {
            return Self::once();
        }
        let mut terms = Self::usual();
        for place in places.iter().rev().flatten() {
            terms.lay_over(place);
        }
        terms
    }

    fn lay_over(&mut self, place: &Retry) {
        self.attempts = place.attempts.unwrap_or(self.attempts);
        if let Some(backoff) = &place.backoff {
            self.growth = Growth::Of(backoff.clone());
        }
        self.initial_delay = place.initial_delay.unwrap_or(self.initial_delay);
        self.max_delay = place.max_delay.unwrap_or(self.max_delay);
        self.jitter = place.jitter.unwrap_or(self.jitter);
        self.budget = place.budget.or(self.budget);
        self.max_retry_after = place.max_retry_after.unwrap_or(self.max_retry_after);
        if !place.retry_on.is_empty() {
            self.retry_on.clone_from(&place.retry_on);
        }
        if !place.statuses.is_empty() {
            self.statuses.clone_from(&place.statuses);
        }
        if !place.rules.is_empty() {
            self.rules.clone_from(&place.rules);
        }
    }

    /// With what a rule says over them.
    pub(super) fn of_rule(&self, own: Option<&Retry>) -> Self {
        let mut terms = self.clone();
        if let Some(own) = own {
            terms.lay_over(own);
        }
        terms
    }

    /// The terms of a step of a flow.
    pub(super) fn of_work(work: Option<&WorkConfig>) -> Self {
        let defaults = WorkConfig { max_retries: Some(10), ..WorkConfig::default() };
        let work = work.unwrap_or(&defaults);
        let growth = match work.growth.unwrap_or(WorkBackoff::Exponential) {
            WorkBackoff::Fixed => Growth::Of(Backoff::Fixed),
            WorkBackoff::Linear => Growth::Multiples,
            WorkBackoff::Exponential => Growth::Of(Backoff::Exponential(4)),
        };
        Self {
            attempts: Attempts::Times(work.max_retries.unwrap_or(0)),
            growth,
            initial_delay: work.backoff.unwrap_or(Duration::from_secs(1)),
            max_delay: work.max_backoff.unwrap_or(Duration::from_mins(1)),
            ..Self::usual()
        }
    }

    /// The largest number of retries that anything here declares; `None` is any number.
    pub(super) fn most_retries(&self) -> Option<u32> {
        let own = self.rules.iter().filter_map(|rule| match &rule.then {
            Then::Retry(Some(own)) => own.attempts,
            _ => None,
        });
        let all = own.chain([self.attempts]).map(|attempts| match attempts {
            Attempts::Times(times) => Some(times),
            Attempts::Unlimited => None,
        });
        let all: Option<Vec<u32>> = all.collect();
        all.map(|it| it.into_iter().max().unwrap_or_default())
    }
}
