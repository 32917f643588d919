//! One wrapped call from its first attempt to its end, without the waiting.
//!
//! Both ways of waiting drive this: ask before an attempt, tell what came of it, wait as told. The
//! decisions themselves are the crate's verdict and breaker.

use core::sync::atomic::Ordering;
use core::time::Duration;

use super::builder::{Classify, Observe, Retry};
use super::shared_breaker::{Pass, SharedBreaker};
use super::stopped::{Facts, Stopped};
use crate::breaker::{Admission, Health};
use crate::draw::Draws;
use crate::reason::Reason;
use crate::timestamp::{Timestamp, nanos};
use crate::verdict::{Decision, RetryState, Verdict, verdict};

/// Where one call stands.
#[derive(Debug)]
pub(super) struct Trial {
    attempts: u32,
    state: RetryState,
    pool_consumed: u32,
    held_since: Option<Timestamp>,
    /// How often the breaker was asked again.
    looks: u32,
    /// Whether this call has draws of its own.
    numbered: bool,
}

/// Whether an attempt may start.
pub(super) enum Gate<'r> {
    Go(Option<Pass<'r>>),
    /// Ask again after this long.
    Wait(Duration),
    Stop(Reason),
}

impl Trial {
    pub(super) fn start(deadline: Option<Timestamp>) -> Self {
        Self {
            attempts: 0,
            state: RetryState { deadline, ..RetryState::default() },
            pool_consumed: 0,
            held_since: None,
            looks: 0,
            numbered: false,
        }
    }

    /// A trial whose first attempt was made without asking.
    pub(super) fn after_first() -> Self {
        Self { attempts: 1, ..Self::start(None) }
    }

    pub(super) fn gate<'r, C, H, K>(
        &mut self,
        retry: &'r Retry<C, H, K>,
        now: impl Fn() -> Timestamp,
    ) -> Gate<'r> {
        if is_cancelled(retry) {
            return Gate::Stop(Reason::Cancelled);
        }
        let Some(breaker) = &retry.breaker else {
            self.attempts = self.attempts.saturating_add(1);
            return Gate::Go(None);
        };
        // Whoever was held may have been held past the deadline.
        let late = |deadline| self.held_since.is_some() && now() > deadline;
        if self.state.deadline.is_some_and(late) {
            return Gate::Stop(Reason::Deadline);
        }
        match breaker.admit(&now) {
            Admission::Go(ticket) => {
                self.attempts = self.attempts.saturating_add(1);
                self.held_since = None;
                Gate::Go(Some(Pass::new(breaker, ticket)))
            }
            Admission::Refused => Gate::Stop(Reason::CircuitOpen),
            Admission::Held { until } => self.hold(retry, breaker, until, now()),
        }
    }

    fn hold<C, H, K>(
        &mut self,
        retry: &Retry<C, H, K>,
        breaker: &SharedBreaker,
        until: Option<Timestamp>,
        now: Timestamp,
    ) -> Gate<'static> {
        let settings = breaker.settings();
        let since = *self.held_since.get_or_insert(now);
        let most = settings.max_hold.map(|most| since.after(most));
        if most.is_some_and(|most| now >= most) {
            return Gate::Stop(Reason::CircuitOpen);
        }
        let due = until.unwrap_or(now);
        if self.state.deadline.is_some_and(|deadline| due > deadline) {
            return Gate::Stop(Reason::Deadline);
        }
        // While a probe is under way nobody knows how long it takes, so the breaker is asked again
        // now and then; each call at a time of its own, so that they are not all released at once.
        let pause = settings.recovery_timeout.checked_div(16).unwrap_or_default();
        let pause = nanos(pause.clamp(SHORTEST_LOOK, LONGEST_LOOK));
        self.looks = self.looks.saturating_add(1);
        let offset = self.draws(retry).between(self.looks, pause / 2, pause);
        let next = due.after(Duration::from_nanos(offset));
        let next = most.map_or(next, |most| next.min(most));
        Gate::Wait(next.since(now).max(SHORTEST_LOOK))
    }

    /// The draws of this call: those of the next number, the first time they are needed.
    fn draws<C, H, K>(&mut self, retry: &Retry<C, H, K>) -> Draws {
        if !self.numbered {
            let call = retry.failed_calls.fetch_add(1, Ordering::Relaxed);
            self.state.draws = retry.seed.draws(call, 0, 1);
            self.numbered = true;
        }
        self.state.draws
    }

    /// Takes in a failed attempt: how long to wait before the next, or why there is none.
    pub(super) fn failed<C, H, K, E>(
        &mut self,
        retry: &Retry<C, H, K>,
        error: &E,
        pass: Option<Pass<'_>>,
        now: Timestamp,
    ) -> Result<Duration, End>
    where
        C: Classify<E>,
        H: Observe<E>,
    {
        self.draws(retry);
        let failure = retry.classify.classify(error);
        if is_cancelled(retry) {
            return Err(End::bare(Reason::Cancelled));
        }
        let given = self.verdict(retry, &failure, now);
        if let Some(pass) = pass {
            pass.ends(Health::of_failure(failure.cause, given.class), now);
        }
        retry.observe.observe(&given, error);
        self.state.usage = given.usage(self.state.usage);
        match given.decision {
            Decision::Retry { wait, .. } => Ok(wait),
            Decision::Hold => {
                if let Some(breaker) = &retry.breaker {
                    breaker.trip(now);
                }
                Ok(Duration::ZERO)
            }
            Decision::Stop { reason, .. } => Err(End { reason, verdict: Some(Box::new(given)) }),
        }
    }

    /// The verdict, and the pool charged if it says so. When another call takes the last unit in
    /// between, the question is asked again with what is then left.
    fn verdict<C, H, K>(
        &mut self,
        retry: &Retry<C, H, K>,
        failure: &crate::Failure<'_>,
        now: Timestamp,
    ) -> Verdict {
        loop {
            let pool = retry.pool.as_ref();
            self.state.pool = pool.map(|pool| pool.balance(self.pool_consumed));
            let mut given = verdict(&retry.policy, &self.state, failure, now);
            if given.decision == Decision::Hold && retry.breaker.is_none() {
                // A rule that holds needs a breaker to hold with; without one it can only stop.
                given.decision =
                    Decision::Stop { reason: Reason::Rule, then: crate::rules::RuleAction::Stop };
            }
            let (Some(pool), None) = (pool, given.reason()) else {
                return given;
            };
            if pool.charge(self.pool_consumed).is_ok() {
                self.pool_consumed = self.pool_consumed.saturating_add(1);
                return given;
            }
        }
    }

    pub(super) fn stopped<E>(&self, end: End, error: Option<E>) -> Stopped<E> {
        Stopped(Box::new(Facts { reason: end.reason, attempts: self.attempts, error, verdict: end.verdict }))
    }
}

fn is_cancelled<C, H, K>(retry: &Retry<C, H, K>) -> bool {
    let cancel = retry.cancel.as_ref();
    cancel.is_some_and(super::CancelToken::is_cancelled)
}

/// Why a call ends, and the verdict that ended it, if it was one.
#[derive(Debug)]
pub(super) struct End {
    reason: Reason,
    verdict: Option<Box<Verdict>>,
}

impl End {
    pub(super) const fn bare(reason: Reason) -> Self {
        Self { reason, verdict: None }
    }
}

const SHORTEST_LOOK: Duration = Duration::from_millis(1);
const LONGEST_LOOK: Duration = Duration::from_secs(1);
