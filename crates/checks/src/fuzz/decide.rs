//! Bytes decide what happens to a command, and the laws are checked at every step.
//!
//! The input is a policy, a state and a series of failures, or the steps of a breaker (`breaker`). The target
//! keeps its own counters and compares them with what the policy reports.

use std::collections::BTreeSet;
use std::time::Duration;

use undaunted_policy::{
    Decision, Policy, Pool, PoolLimits, RetryState, Schedule, Timestamp, Verdict, verdict,
};

use super::breaker;
use super::byte_source::ByteSource;
use super::expected::ExpectedPolicy;
use super::generate;
use super::law::{self, VerdictObservation, uphold};
use super::restore::round_trip;

const STEPS: usize = 64;
const PLANNED: usize = 32;

/// Runs what the bytes describe and returns what came up: `retry`, `hold`, the words of the reasons to stop,
/// and the answers and transitions of a breaker.
pub fn policy_decide(data: &[u8]) -> BTreeSet<&'static str> {
    let mut bytes = ByteSource::of(data);
    if bytes.flag() {
        return breaker::run_breaker(&mut bytes);
    }
    let (config, expected) = generate::settings(&mut bytes);
    let meant = expected.all().all(generate::is_valid);
    let built = config.build();
    let law = "invalid settings are refused, and nothing else";
    uphold(law, built.is_ok() == meant, &built);
    let Ok(policy) = built else {
        return BTreeSet::from(["refused"]);
    };
    let read = ExpectedPolicy::of(&policy);
    let kept = read.as_ref() == Some(&expected);
    uphold("a saved policy says what was asked for", kept, &(&policy, &expected));
    let state = generate::state(&mut bytes);
    plan(&policy, &expected, state);
    FailingCommand::new(policy, expected, state, &mut bytes).run_failures(&mut bytes)
}

/// The plan of a policy keeps the laws and is reproducible.
pub(super) fn plan(policy: &Policy, expected: &ExpectedPolicy, state: RetryState) {
    let made = || -> Vec<_> { Schedule::new(policy, state.draws).take(PLANNED).collect() };
    let plan = made();
    if let Some(law) = law::broken_by_plan(&expected.base, &plan) {
        uphold(law, false, &(policy, &plan));
    }
    uphold("the same seed gives the same plan", plan == made(), &(policy, &plan));
}

pub(super) fn ask(
    policy: &Policy,
    expected: &ExpectedPolicy,
    state: RetryState,
    failure: &undaunted_policy::Failure<'_>,
    now: Timestamp,
) -> Verdict {
    let given = verdict(policy, &state, failure, now);
    let facts = (policy, state, failure, now, given);
    let same = verdict(policy, &state, failure, now) == given;
    uphold("the same call gives the same answer", same, &facts);
    let observation = VerdictObservation {
        terms: expected.when(given.rule),
        state,
        retry_after: failure.retry_after,
        now,
        verdict: given,
    };
    if let Some(law) = observation.broken() {
        uphold(law, false, &facts);
    }
    given
}

/// A command whose attempts all fail.
struct FailingCommand {
    policy: Policy,
    expected: ExpectedPolicy,
    first: RetryState,
    state: RetryState,
    pool: Option<Pool>,
    item_consumed: u32,
    now: Timestamp,
    /// Counted here, not by the policy.
    started: u32,
    waited: Duration,
}

impl FailingCommand {
    fn new(policy: Policy, expected: ExpectedPolicy, state: RetryState, bytes: &mut ByteSource<'_>) -> Self {
        let pool = bytes.maybe(|bytes| Pool {
            limits: PoolLimits { total: bytes.count(), per_item: bytes.count() },
            consumed: bytes.count(),
        });
        Self {
            policy,
            expected,
            first: state,
            state,
            pool,
            item_consumed: bytes.count(),
            now: bytes.instant(),
            started: 0,
            waited: Duration::ZERO,
        }
    }

    fn run_failures(mut self, bytes: &mut ByteSource<'_>) -> BTreeSet<&'static str> {
        let mut outcomes = BTreeSet::new();
        for _ in 0..STEPS {
            outcomes.insert(self.fail(bytes));
            if bytes.is_empty() {
                break;
            }
        }
        outcomes
    }

    fn fail(&mut self, bytes: &mut ByteSource<'_>) -> &'static str {
        self.now = self.now.after(bytes.setting());
        if let Some(pool) = self.pool {
            self.state.pool = Some(pool.balance(self.item_consumed));
        }
        let failure = generate::failure(bytes);
        let given = ask(&self.policy, &self.expected, self.state, &failure, self.now);
        if bytes.byte() % 8 == 7 {
            self.crash(given);
        }
        let word = match given.decision {
            Decision::Retry { at, wait } => {
                self.now = at;
                self.waited += wait;
                self.charge();
                "retry"
            }
            Decision::Hold => {
                self.charge();
                "hold"
            }
            Decision::Stop { reason, .. } => reason.word(),
        };
        self.state.progress = given.progress(self.state.progress);
        self.audit();
        word
    }

    fn charge(&mut self) {
        self.started += 1;
        if let Some(pool) = &mut self.pool {
            let charged = pool.charge(&mut self.item_consumed);
            uphold("the pool grants what a verdict allows", charged.is_ok(), &charged);
        }
    }

    /// The process crashes and recovers from what was saved.
    fn crash(&mut self, given: Verdict) {
        let saved = |result: serde_json::Result<Vec<u8>>| result.unwrap_or_default();
        let policy = round_trip(&saved(serde_json::to_vec(&self.policy)));
        let state = round_trip(&saved(serde_json::to_vec(&self.state)));
        let verdict = round_trip(&saved(serde_json::to_vec(&given)));
        let restored = (policy.as_ref(), state, verdict);
        let same = restored == (Some(&self.policy), Some(self.state), Some(given));
        uphold("a saved value is read back the same", same, &restored);
        if let (Some(policy), Some(state)) = (policy, state) {
            (self.policy, self.state) = (policy, state);
        }
    }

    fn audit(&self) {
        let (before, now) = (self.first.progress, self.state.progress);
        let counted = before.retries.saturating_add(self.started);
        let added = before.spent.saturating_add(self.waited);
        let exact = (now.retries, now.spent) == (counted, added);
        uphold("counters match the starts and the waits", exact, &now);
        let (retries, budget) = self.expected.most();
        let within = retries.is_none_or(|most| now.retries <= most.max(before.retries))
            && budget.is_none_or(|most| now.spent <= most.max(before.spent));
        uphold("no series of failures passes the limits", within, &now);
    }
}
