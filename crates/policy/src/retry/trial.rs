//! One wrapped call from its first attempt to its end, without the waiting.
//!
//! Both ways of waiting drive this: ask before an attempt, tell what came of it, wait as told. The
//! decisions themselves are the crate's verdict and breaker.

use core::sync::atomic::Ordering;
use core::time::Duration;

use super::builder::{Classify, Observe, Retry};
use super::shared_breaker::{Pass, SharedBreaker};
use super::stopped::Stopped;
use crate::breaker::{Admission, Health};
use crate::limits::Progress;
use crate::reason::Reason;
use crate::timestamp::Timestamp;
use crate::verdict::{Decision, State, Verdict, verdict};

/// Where one call stands.
#[derive(Debug)]
pub(super) struct Trial {
    attempts: u32,
    state: State,
    pool_consumed: u32,
    held_since: Option<Timestamp>,
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
            state: State {
                deadline,
                ..State::default()
            },
            pool_consumed: 0,
            held_since: None,
        }
    }

    /// A trial whose first attempt was made without asking.
    pub(super) fn after_first() -> Self {
        Self {
            attempts: 1,
            ..Self::start(None)
        }
    }

    pub(super) fn gate<'r, C, H, K>(
        &mut self,
        retry: &'r Retry<C, H, K>,
        now: Timestamp,
    ) -> Gate<'r> {
        if retry
            .cancel
            .as_ref()
            .is_some_and(super::Cancel::is_cancelled)
        {
            return Gate::Stop(Reason::Cancelled);
        }
        let Some(breaker) = &retry.breaker else {
            self.attempts = self.attempts.saturating_add(1);
            return Gate::Go(None);
        };
        match breaker.admit(now) {
            Admission::Go(ticket) => {
                self.attempts = self.attempts.saturating_add(1);
                self.held_since = None;
                Gate::Go(Some(Pass::new(breaker, ticket)))
            }
            Admission::Refused => Gate::Stop(Reason::CircuitOpen),
            Admission::Held { until } => self.hold(breaker, until, now),
        }
    }

    fn hold(
        &mut self,
        breaker: &SharedBreaker,
        until: Option<Timestamp>,
        now: Timestamp,
    ) -> Gate<'static> {
        let settings = breaker.settings();
        let since = *self.held_since.get_or_insert(now);
        if settings
            .max_hold
            .is_some_and(|most| now.since(since) >= most)
        {
            return Gate::Stop(Reason::CircuitOpen);
        }
        if self.state.deadline.is_some_and(|deadline| now > deadline) {
            return Gate::Stop(Reason::Deadline);
        }
        // While a probe is under way nobody knows how long it takes, so the breaker is asked again
        // now and then.
        let pause = settings
            .recovery_timeout
            .checked_div(16)
            .unwrap_or_default()
            .clamp(SHORTEST_LOOK, LONGEST_LOOK);
        let wait = until.map_or(pause, |until| until.since(now));
        let left = settings.max_hold.map(|most| since.after(most).since(now));
        Gate::Wait(wait.min(left.unwrap_or(wait)).max(SHORTEST_LOOK))
    }

    /// Takes in a failed attempt: how long to wait before the next, or that there is none.
    pub(super) fn failed<C, H, K, E>(
        &mut self,
        retry: &Retry<C, H, K>,
        error: &E,
        pass: Option<Pass<'_>>,
        now: Timestamp,
    ) -> Result<Duration, Box<Verdict>>
    where
        C: Classify<E>,
        H: Observe<E>,
    {
        if self.state.progress == Progress::default() {
            let call = retry.failed_calls.fetch_add(1, Ordering::Relaxed);
            self.state.draws = retry.seed.draws(call, 0, 1);
        }
        let failure = retry.classify.classify(error);
        let mut given = self.verdict(retry, &failure, now);
        if given.decision == Decision::Hold && retry.breaker.is_none() {
            // A rule that holds needs a breaker to hold with; without one it can only stop.
            given.decision = Decision::Stop {
                reason: Reason::Rule,
                then: crate::rules::Then::Stop,
            };
        }
        if let Some(pass) = pass {
            pass.ends(Health::of_failure(failure.cause, given.class), now);
        }
        retry.observe.observe(&given, error);
        self.state.progress = given.progress(self.state.progress);
        match given.decision {
            Decision::Retry { wait, .. } => Ok(wait),
            Decision::Hold => {
                if let Some(breaker) = &retry.breaker {
                    breaker.trip(now);
                }
                Ok(Duration::ZERO)
            }
            Decision::Stop { .. } => Err(Box::new(given)),
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
            let given = verdict(&retry.policy, &self.state, failure, now);
            let (Some(pool), None) = (pool, given.reason()) else {
                return given;
            };
            if pool.charge(self.pool_consumed).is_ok() {
                self.pool_consumed = self.pool_consumed.saturating_add(1);
                return given;
            }
        }
    }

    pub(super) fn stopped<E>(
        &self,
        reason: Reason,
        error: Option<E>,
        verdict: Option<Box<Verdict>>,
    ) -> Stopped<E> {
        Stopped {
            reason,
            attempts: self.attempts,
            error,
            verdict,
        }
    }
}

const SHORTEST_LOOK: Duration = Duration::from_millis(1);
const LONGEST_LOOK: Duration = Duration::from_secs(1);
