//! Each law, broken on purpose.

use undaunted_policy::{Failure, RetryConfig, Schedule, Seed, verdict};

use super::super::expected::ExpectedPolicy;
use super::*;

const SECOND: Duration = Duration::from_secs(1);
const NOW: Timestamp = Timestamp::from_millis(5000);

fn expected() -> (undaunted_policy::Policy, ExpectedPolicy) {
    let config = RetryConfig::exponential(2.0).attempts(3).retry_budget(Duration::from_secs(20));
    let policy = config.build().unwrap();
    let expected = ExpectedPolicy::of(&policy).unwrap();
    (policy, expected)
}

/// The law found broken after `spoil` has changed an honest verdict.
fn found(spoil: impl FnOnce(&mut VerdictObservation<'_>)) -> Option<&'static str> {
    let (policy, expected) = expected();
    let state = RetryState {
        progress: RetryProgress { retries: 1, spent: SECOND, previous: Some(SECOND) },
        deadline: Some(NOW.after(SECOND * 100)),
        ..RetryState::default()
    };
    let asked = Some(SECOND);
    let failure = Failure::status(503).retry_after(asked);
    let mut observation = VerdictObservation {
        terms: &expected.base,
        state,
        retry_after: asked,
        now: NOW,
        verdict: verdict(&policy, &state, &failure, NOW),
    };
    assert_eq!(observation.broken(), None);
    spoil(&mut observation);
    observation.broken()
}

fn decision(observation: &mut VerdictObservation<'_>, wait: Duration) {
    let at = observation.now.after(wait);
    observation.verdict.decision = Decision::Retry { at, wait };
}

#[test]
fn a_retry_past_a_limit_is_found() {
    assert_eq!(
        found(|observation| observation.state.progress.retries = 3),
        Some("a retry is one of the attempts")
    );
    assert_eq!(
        found(|observation| observation.state.progress.spent = SECOND * 19),
        Some("the delays fit the budget")
    );
    assert_eq!(
        found(|observation| observation.state.deadline = Some(NOW.after(SECOND))),
        Some("a retry is due by the deadline")
    );
    let empty = PoolBalance { total: 5, consumed: 5, per_item: 5, item_consumed: 0 };
    assert_eq!(
        found(|observation| observation.state.pool = Some(empty)),
        Some("a retry has a place in the pool")
    );
}

#[test]
fn a_wait_that_is_too_short_or_made_up_is_found() {
    assert_eq!(
        found(|observation| observation.retry_after = Some(SECOND * 9)),
        Some("no retry is made before Retry-After")
    );
    assert_eq!(
        found(|observation| decision(observation, SECOND * 3)),
        Some("a wait is the drawn delay or Retry-After")
    );
    assert_eq!(
        found(|observation| observation.now = NOW.after(SECOND)),
        Some("a retry is due when its wait is over")
    );
}

#[test]
fn a_delay_that_is_wrong_is_found() {
    let with = |computed, capped, drawn| {
        found(move |observation| {
            observation.verdict.arithmetic.delay = Some(Delay { computed, capped, drawn });
            decision(observation, drawn.max(SECOND));
        })
    };
    assert_eq!(with(SECOND * 2, SECOND * 3, SECOND * 3), Some("before jitter no delay passes its cap"));
    assert_eq!(with(SECOND * 2, SECOND * 2, SECOND), Some("a drawn delay lies in the band of its jitter"));
    assert_eq!(with(SECOND * 4, SECOND * 4, SECOND * 4), Some("a strategy gives its documented series"));
}

#[test]
fn an_answer_to_another_question_is_found() {
    assert_eq!(
        found(|observation| observation.verdict.arithmetic.retry = 7),
        Some("the arithmetic starts from the state")
    );
    assert_eq!(
        found(|observation| observation.verdict.arithmetic.retries_allowed = None),
        Some("the arithmetic names the limits in force")
    );
    assert_eq!(
        found(|observation| observation.verdict.class = FailureClass::Permanent),
        Some("a permanent failure is retried by rule only")
    );
}

#[test]
fn a_stop_without_cause_is_found() {
    for &reason in Reason::ALL {
        let then = RuleAction::Stop;
        let stop = Decision::Stop { reason, then };
        assert_eq!(
            found(|observation| observation.verdict.decision = stop),
            Some("a stop has the reason it gives"),
            "{reason}"
        );
    }
    assert_eq!(
        found(|observation| {
            observation.state.progress.retries = 3;
            let (reason, then) = (Reason::Attempts, RuleAction::Skip);
            observation.verdict.decision = Decision::Stop { reason, then };
        }),
        Some("only a rule skips or dead-letters")
    );
}

#[test]
fn a_hold_that_no_rule_asked_for_is_found() {
    assert_eq!(found(|observation| observation.verdict.decision = Decision::Hold), Some("only a rule holds"));
}

#[test]
fn a_plan_that_is_wrong_is_found() {
    let (policy, expected) = expected();
    let honest: Vec<PlannedRetry> = Schedule::new(&policy, Seed(0).draws(0, 0, 1)).collect();
    assert_eq!(broken_by_plan(&expected.base, &honest), None);
    let found = |spoil: fn(&mut Vec<PlannedRetry>)| {
        let mut plan = honest.clone();
        spoil(&mut plan);
        broken_by_plan(&expected.base, &plan)
    };
    let gap = found(|plan| {
        plan.remove(0);
    });
    assert_eq!(gap, Some("a plan leaves no retry out"));
    let sum = found(|plan| plan[1].spent = SECOND);
    assert_eq!(sum, Some("a plan adds its delays up"));
    let longer = found(|plan| {
        let delay = Delay { computed: SECOND * 8, capped: SECOND * 8, drawn: SECOND * 8 };
        plan.push(PlannedRetry { retry: 4, delay, spent: SECOND * 15 });
    });
    assert_eq!(longer, Some("a plan is no longer than its attempts"));
}

#[test]
#[should_panic(expected = "broken law: two and two make four")]
fn a_broken_law_is_a_panic() {
    uphold("two and two make four", false, &5);
}
