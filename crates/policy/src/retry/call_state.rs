//! The state of one wrapped call, from its first attempt to its end, without the waiting.
//!
//! `Retry::run` and `Retry::call` share it: they ask [`CallState::start_attempt`] before an attempt, report
//! a failure to [`CallState::failed`], and wait for as long as either returns. Decisions are left to
//! [`verdict`] and the breaker.

use core::sync::atomic::Ordering;
use core::time::Duration;

use super::builder::{Classify, Observe, Retry};
use super::shared_breaker::{AdmittedStart, SharedBreaker};
use super::stopped::{Stopped, StoppedDetails};
use crate::breaker::{Admission, Health};
use crate::draw::Draws;
use crate::reason::Reason;
use crate::timestamp::{Timestamp, nanos};
use crate::verdict::{Decision, RetryState, Verdict, verdict};

#[derive(Debug)]
pub(super) struct CallState {
    attempts: u32,
    state: RetryState,
    pool_consumed: u32,
    held_since: Option<Timestamp>,
    /// How often the breaker was asked again while the call was held.
    breaker_polls: u32,
    /// Whether `state.draws` has been set; a call that never fails needs none.
    has_draws: bool,
}

/// Whether an attempt may start.
pub(super) enum StartDecision<'r> {
    Start(Option<AdmittedStart<'r>>),
    /// The caller waits this long and asks again.
    Wait(Duration),
    Stop(Reason),
}

impl CallState {
    pub(super) fn start(deadline: Option<Timestamp>) -> Self {
        Self {
            attempts: 0,
            state: RetryState { deadline, ..RetryState::default() },
            pool_consumed: 0,
            held_since: None,
            breaker_polls: 0,
            has_draws: false,
        }
    }

    /// The state of a call whose first attempt was made without a check.
    pub(super) fn after_first() -> Self {
        Self { attempts: 1, ..Self::start(None) }
    }

    pub(super) fn start_attempt<'r, C, H, K>(
        &mut self,
        retry: &'r Retry<C, H, K>,
        now: impl Fn() -> Timestamp,
    ) -> StartDecision<'r> {
        if is_cancelled(retry) {
            return StartDecision::Stop(Reason::Cancelled);
        }
        let Some(breaker) = &retry.breaker else {
            self.attempts = self.attempts.saturating_add(1);
            return StartDecision::Start(None);
        };
        // A hold may have lasted past the deadline.
        let late = |deadline| self.held_since.is_some() && now() > deadline;
        if self.state.deadline.is_some_and(late) {
            return StartDecision::Stop(Reason::Deadline);
        }
        match breaker.admit(&now) {
            Admission::Go(ticket) => {
                self.attempts = self.attempts.saturating_add(1);
                self.held_since = None;
                StartDecision::Start(Some(AdmittedStart::new(breaker, ticket)))
            }
            Admission::Refused => StartDecision::Stop(Reason::CircuitOpen),
            Admission::Held { until } => self.hold(retry, breaker, until, now()),
        }
    }

    fn hold<C, H, K>(
        &mut self,
        retry: &Retry<C, H, K>,
        breaker: &SharedBreaker,
        until: Option<Timestamp>,
        now: Timestamp,
    ) -> StartDecision<'static> {
        let settings = breaker.settings();
        let since = *self.held_since.get_or_insert(now);
        let most = settings.max_hold.map(|most| since.after(most));
        if most.is_some_and(|most| now >= most) {
            return StartDecision::Stop(Reason::CircuitOpen);
        }
        let due = until.unwrap_or(now);
        if self.state.deadline.is_some_and(|deadline| due > deadline) {
            return StartDecision::Stop(Reason::Deadline);
        }
        // How long a running probe takes is unknown, so each held call asks the breaker again from time
        // to time, after a jittered pause: the calls must not all start at once.
        let pause = settings.recovery_timeout.checked_div(16).unwrap_or_default();
        let pause = nanos(pause.clamp(SHORTEST_POLL, LONGEST_POLL));
        self.breaker_polls = self.breaker_polls.saturating_add(1);
        let offset = self.draws(retry).between(self.breaker_polls, pause / 2, pause);
        let next = due.after(Duration::from_nanos(offset));
        let next = most.map_or(next, |most| next.min(most));
        StartDecision::Wait(next.since(now).max(SHORTEST_POLL))
    }

    /// The draws of this call. The first request takes the next call number.
    fn draws<C, H, K>(&mut self, retry: &Retry<C, H, K>) -> Draws {
        if !self.has_draws {
            let call = retry.failed_calls.fetch_add(1, Ordering::Relaxed);
            self.state.draws = retry.seed.draws(call, 0, 1);
            self.has_draws = true;
        }
        self.state.draws
    }

    /// Records a failed attempt and returns how long to wait before the next one, or why there is none.
    pub(super) fn failed<C, H, K, E>(
        &mut self,
        retry: &Retry<C, H, K>,
        error: &E,
        pass: Option<AdmittedStart<'_>>,
        now: Timestamp,
    ) -> Result<Duration, StopCause>
    where
        C: Classify<E>,
        H: Observe<E>,
    {
        self.draws(retry);
        let failure = retry.classify.classify(error);
        if is_cancelled(retry) {
            return Err(StopCause::without_verdict(Reason::Cancelled));
        }
        let verdict = self.verdict(retry, &failure, now);
        if let Some(pass) = pass {
            pass.ends(Health::of_failure(failure.cause, verdict.class), now);
        }
        retry.observe.observe(&verdict, error);
        self.state.progress = verdict.progress(self.state.progress);
        match verdict.decision {
            Decision::Retry { wait, .. } => Ok(wait),
            Decision::Hold => {
                if let Some(breaker) = &retry.breaker {
                    breaker.trip(now);
                }
                Ok(Duration::ZERO)
            }
            Decision::Stop { reason, .. } => Err(StopCause { reason, verdict: Some(Box::new(verdict)) }),
        }
    }

    /// Computes the verdict and charges the pool for a retry. If another call takes the last unit in
    /// between, the verdict is computed again with the new balance.
    fn verdict<C, H, K>(
        &mut self,
        retry: &Retry<C, H, K>,
        failure: &crate::Failure<'_>,
        now: Timestamp,
    ) -> Verdict {
        loop {
            let pool = retry.pool.as_ref();
            self.state.pool = pool.map(|pool| pool.balance(self.pool_consumed));
            let mut verdict = verdict(&retry.policy, &self.state, failure, now);
            if verdict.decision == Decision::Hold && retry.breaker.is_none() {
                // `hold` needs a breaker; without one the rule can only stop.
                verdict.decision =
                    Decision::Stop { reason: Reason::Rule, then: crate::rules::RuleAction::Stop };
            }
            let (Some(pool), None) = (pool, verdict.reason()) else {
                return verdict;
            };
            if pool.charge(self.pool_consumed).is_ok() {
                self.pool_consumed = self.pool_consumed.saturating_add(1);
                return verdict;
            }
        }
    }

    pub(super) fn stopped<E>(&self, end: StopCause, error: Option<E>) -> Stopped<E> {
        Stopped(Box::new(StoppedDetails {
            reason: end.reason,
            attempts: self.attempts,
            error,
            verdict: end.verdict,
        }))
    }
}

fn is_cancelled<C, H, K>(retry: &Retry<C, H, K>) -> bool {
    let cancel = retry.cancel.as_ref();
    cancel.is_some_and(super::CancelToken::is_cancelled)
}

/// Why a call ends without success; a breaker or a cancellation has no verdict.
#[derive(Debug)]
pub(super) struct StopCause {
    reason: Reason,
    verdict: Option<Box<Verdict>>,
}

impl StopCause {
    pub(super) const fn without_verdict(reason: Reason) -> Self {
        Self { reason, verdict: None }
    }
}

const SHORTEST_POLL: Duration = Duration::from_millis(1);
const LONGEST_POLL: Duration = Duration::from_secs(1);
