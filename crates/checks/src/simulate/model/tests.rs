//! The worked examples of the semantics, and what follows from the rest.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{DelayRange, ObservedChoices, PredictedEnd, Prediction, predict, predict_with};
use crate::random::SeededRandom;
use crate::simulate::case::{
    AttemptScript, CaseAttempts, CaseBackoff, CaseBreaker, CaseCommand, CaseCompletion, CaseFlow,
    CaseFlowStep, CaseHandler, CaseInput, CaseInputRole, CaseJitter, CaseMap, CaseRetry, CaseShape,
    CaseStepKind, CaseTolerance, CaseWorkConfig, JobCase, ScriptedAttempt, ScriptedEnd,
};

const SECOND: Duration = Duration::from_secs(1);

fn command(label: u32, retry: Option<CaseRetry>) -> CaseCommand {
    CaseCommand {
        label,
        call: None,
        retry,
        timeout: None,
        capture: None,
        breaker: None,
        stays_interrupted: false,
        on_failure: None,
        on_success: Vec::new(),
    }
}

fn times(attempts: u32) -> CaseRetry {
    CaseRetry { attempts: Some(CaseAttempts::Times(attempts)), ..CaseRetry::default() }
}

fn case(shape: CaseShape) -> JobCase {
    JobCase {
        deadline: None,
        pool: None,
        share: None,
        retry: None,
        breakers: Vec::new(),
        shape,
        scripts: BTreeMap::new(),
    }
}

/// A list of one command that fails this often.
fn list(retry: CaseRetry, failures: usize) -> JobCase {
    let mut case = case(CaseShape::List(vec![command(0, Some(retry))]));
    fails(&mut case, 0, "", failures);
    case
}

/// Attempts of about a second that fail this often and then succeed. Their times differ by milliseconds.
fn fails(case: &mut JobCase, label: u32, item: &str, failures: usize) {
    let number = u64::try_from(case.scripts.len()).unwrap();
    let odd = number * number * 3;
    let takes = Duration::from_millis(911 - odd);
    let failure = ScriptedAttempt { takes, end: ScriptedEnd::Exit(1) };
    let mut acts = vec![failure; failures];
    acts.push(ScriptedAttempt { takes, end: ScriptedEnd::Success(String::new()) });
    let _ = case.scripts.insert((label, item.to_owned()), AttemptScript { acts });
}

const EVER: usize = 500;

/// A map over items that fail this often.
fn map(retry: Option<CaseRetry>, width: u32, failures: &[usize]) -> JobCase {
    let items: Vec<String> = (0..failures.len()).map(|it| format!("a{it}")).collect();
    let shape = CaseShape::Map(Box::new(CaseMap {
        setup: Vec::new(),
        commands: vec![command(0, retry)],
        reduce: Vec::new(),
        items: items.clone(),
        items_by_shell: false,
        width,
        item_deadline: None,
        timeout_retry: None,
        policy_retry: None,
        tolerance: CaseTolerance::default(),
        completion: None,
    }));
    let mut case = case(shape);
    for (item, failures) in items.iter().zip(failures) {
        fails(&mut case, 0, item, *failures);
    }
    case
}

fn the_map(case: &mut JobCase) -> &mut CaseMap {
    match &mut case.shape {
        CaseShape::Map(map) => map,
        _ => panic!("no map"),
    }
}

fn predicted(case: &JobCase) -> Prediction {
    predict(case).unwrap()
}

/// The delays of a command, in milliseconds.
fn delays(prediction: &Prediction, label: u32, item: &str) -> Vec<u128> {
    let made = &prediction.made[&(format!("w{label}"), item.to_owned())];
    assert!(made.delays.iter().all(DelayRange::is_exact));
    made.delays.iter().map(|it| it.least.as_millis()).collect()
}

fn end(prediction: &Prediction) -> (&'static str, Vec<&'static str>) {
    let reasons = prediction.end.reasons.iter().copied();
    (prediction.end.status, reasons.collect())
}

#[test]
fn a_hundred_attempts_with_two_minutes_are_seven_retries_of_ninety_one_seconds() {
    let retry = CaseRetry { budget: Some(SECOND * 120), ..times(100) };
    let found = predicted(&list(retry, EVER));
    let expected = [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000];
    assert_eq!(delays(&found, 0, "w0"), expected);
    let made = &found.made[&("w0".to_owned(), "w0".to_owned())];
    assert_eq!((made.attempts, made.spent), (8, DelayRange::exactly(SECOND * 91)));
    assert_eq!(end(&found), ("failed", vec!["retry_budget"]));
}

#[test]
fn one_two_four_stops_before_the_third_with_five_seconds_and_not_with_seven() {
    for (budget, made) in [(5, 2), (6, 2), (7, 3)] {
        let retry = CaseRetry { budget: Some(SECOND * budget), ..times(9) };
        let found = predicted(&list(retry, EVER));
        assert_eq!(delays(&found, 0, "w0").len(), made, "{budget}");
    }
}

#[test]
fn delays_grow_as_in_the_table() {
    let custom = vec![SECOND * 3, SECOND * 9];
    for (backoff, cap, expected) in [
        (CaseBackoff::Fixed, 30, [1, 1, 1, 1, 1]),
        (CaseBackoff::Linear(SECOND * 2), 30, [1, 3, 5, 7, 9]),
        (CaseBackoff::Exponential(4), 30, [1, 2, 4, 8, 16]),
        (CaseBackoff::Exponential(6), 30, [1, 3, 9, 27, 30]),
        (CaseBackoff::Fibonacci, 30, [1, 1, 2, 3, 5]),
        (CaseBackoff::Custom(custom), 4, [3, 4, 4, 4, 4]),
        (CaseBackoff::Custom(Vec::new()), 4, [4, 4, 4, 4, 4]),
    ] {
        let retry = CaseRetry { backoff: Some(backoff.clone()), max_delay: Some(SECOND * cap), ..times(5) };
        let found = predicted(&list(retry, EVER));
        let expected: Vec<u128> = expected.iter().map(|it| it * 1000).collect();
        assert_eq!(delays(&found, 0, "w0"), expected, "{backoff:?}");
        assert_eq!(end(&found), ("failed", vec!["attempts"]));
    }
}

#[test]
fn a_jittered_delay_is_a_range_and_what_was_drawn_is_followed() {
    for (jitter, least, most) in [
        (CaseJitter::Around(30), 700, 1300),
        (CaseJitter::Full, 0, 1000),
        (CaseJitter::Equal, 500, 1000),
        (CaseJitter::Decorrelated, 1000, 3000),
    ] {
        let retry = CaseRetry { jitter: Some(jitter), budget: Some(SECOND * 3), ..times(1) };
        let case = list(retry, 1);
        let key = ("w0".to_owned(), "w0".to_owned());
        let range = predicted(&case).made[&key].delays[0];
        let expected = DelayRange { least: Duration::from_millis(least), most: Duration::from_millis(most) };
        assert_eq!(range, expected, "{jitter:?}");
        // The observed delay decides about the budget; an assumed one would not.
        let mut choices = ObservedChoices::default();
        let _ = choices.delays.insert(key, vec![SECOND * 4]);
        let found = predict_with(&case, &choices).unwrap();
        assert_eq!(end(&found), ("failed", vec!["retry_budget"]));
    }
}

#[test]
fn ten_items_that_always_fail_with_a_pool_of_seven_make_seventeen_attempts() {
    let retry = CaseRetry { backoff: Some(CaseBackoff::Fixed), ..times(9) };
    let mut case = map(Some(retry), 10, &[EVER; 10]);
    case.pool = Some(7);
    let found = predicted(&case);
    let attempts: u32 = found.made.values().map(|it| it.attempts).sum();
    assert_eq!((attempts, found.pool_spent), (17, Some(7)));
    assert_eq!(end(&found), ("partial", vec!["job_budget_exhausted"]));
    case.pool = Some(20);
    case.share = Some(1);
    let found = predicted(&case);
    assert_eq!(found.pool_spent, Some(10));
    assert_eq!(end(&found), ("partial", vec!["workflow_budget_exhausted"]));
}

#[test]
fn a_retry_due_after_the_deadline_of_its_item_is_refused() {
    let mut case = map(Some(times(9)), 1, &[EVER]);
    the_map(&mut case).item_deadline = Some(SECOND * 10);
    let found = predicted(&case);
    // Attempts end at 0.911, 2.822, 5.733; the next would start at 9.733, and the one after that too late.
    assert_eq!(delays(&found, 0, "a0"), [1000, 2000, 4000]);
    assert_eq!(found.items["a0"], PredictedEnd::Dead("deadline"));
}

#[test]
fn a_handler_saves_its_command_or_gives_it_one_attempt_more_each_round() {
    let mut one = list(times(1), EVER);
    let handled = |rounds| CaseHandler { commands: vec![command(1, None)], rounds, fails: false };
    for (rounds, attempts, status) in [(0, 2, "completed"), (3, 5, "failed")] {
        if let CaseShape::List(commands) = &mut one.shape {
            commands[0].on_failure = Some(handled(rounds));
        }
        let found = predicted(&one);
        let made = &found.made[&("w0".to_owned(), "w0".to_owned())];
        assert_eq!((made.attempts, found.end.status), (attempts, status));
    }
}

#[test]
fn a_breaker_holds_starts_and_a_probe_closes_it() {
    let mut case = map(Some(times(5)), 1, &[2, 0]);
    case.breakers.push(CaseBreaker {
        place: None,
        threshold: 1,
        recovery: SECOND * 20,
        half_open_calls: 1,
        fails: false,
        max_hold: None,
    });
    the_map(&mut case).commands[0].breaker = Some(0);
    let found = predicted(&case);
    assert_eq!(found.end.status, "completed");
    case.breakers[0].max_hold = Some(SECOND * 5);
    let found = predicted(&case);
    assert_eq!(end(&found), ("partial", vec!["circuit_open"]));
    case.breakers[0].fails = true;
    let found = predicted(&case);
    assert_eq!(found.items["a1"], PredictedEnd::Dead("circuit_open"));
    assert_eq!(found.made.len(), 1, "no attempt is used");
}

#[test]
fn a_completion_rule_that_is_met_leaves_the_other_items_behind() {
    let mut case = map(None, 2, &[EVER, 0, 0, 0]);
    the_map(&mut case).completion = Some(CaseCompletion { min: Some(2), deadline: None, leaves: false });
    let found = predicted(&case);
    assert_eq!(end(&found), ("completed", vec![]));
    assert_eq!((found.dead, found.items["a2"]), (1, PredictedEnd::Missing));
    let mut late = map(Some(times(EVER.try_into().unwrap())), 4, &[EVER, 0]);
    the_map(&mut late).completion =
        Some(CaseCompletion { min: Some(2), deadline: Some(SECOND * 12), leaves: false });
    assert_eq!(end(&predicted(&late)), ("partial", vec!["deadline"]));
}

#[test]
fn a_tolerance_that_is_passed_stops_the_rest() {
    let mut case = map(Some(times(0)), 1, &[0, 1, 0, 0]);
    the_map(&mut case).tolerance.first_stops = true;
    let found = predicted(&case);
    assert_eq!(end(&found), ("failed", vec!["tolerance"]));
    assert_eq!(found.items["a0"], PredictedEnd::Succeeded);
    assert_eq!(found.items["a2"], PredictedEnd::Missing);
    // Three of ten are more than a fifth, and fewer than ten do not count.
    let mut share = map(None, 1, &[1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    the_map(&mut share).tolerance.share_percent = Some(20);
    let found = predicted(&share);
    assert_eq!(found.items["a9"], PredictedEnd::Succeeded);
    assert_eq!(found.items["a10"], PredictedEnd::Missing);
    the_map(&mut share).tolerance.share_percent = Some(30);
    assert_eq!(predicted(&share).end.status, "partial");
}

#[test]
fn a_stopping_job_waits_for_running_attempts_whatever_its_step_waits_for() {
    let mut case = map(None, 2, &[0, 1]);
    let fails = ScriptedAttempt { takes: SECOND * 5, end: ScriptedEnd::Exit(1) };
    let script = AttemptScript { acts: vec![fails] };
    let _ = case.scripts.insert((0, "a0".to_owned()), script);
    the_map(&mut case).tolerance.first_stops = true;
    // Its wait would end at the instant at which the running attempt ends.
    the_map(&mut case).completion =
        Some(CaseCompletion { min: Some(2), deadline: Some(SECOND * 5), leaves: false });
    assert_eq!(predicted(&case).items["a0"], PredictedEnd::Dead("attempts"));
}

fn step(label: u32, takes: &[(&str, CaseInputRole)], gives: &[&str]) -> CaseFlowStep {
    let takes =
        takes.iter().map(|(name, role)| CaseInput { name: (*name).to_owned(), role: *role, each: false });
    CaseFlowStep {
        label,
        place: 0,
        kind: CaseStepKind::Sync,
        timeout: None,
        work: Some(CaseWorkConfig::default()),
        takes: takes.collect(),
        gives: gives.iter().map(|it| (*it).to_owned()).collect(),
    }
}

#[test]
fn a_flow_does_what_leads_to_its_goals_and_fails_if_one_can_no_longer_be_reached() {
    for (role, check_negation, status) in [
        (CaseInputRole::Required, false, "completed"),
        (CaseInputRole::Required, true, "failed"),
        (CaseInputRole::Optional, true, "completed"),
    ] {
        let steps = vec![
            step(0, &[("x", CaseInputRole::Required)], &["y"]),
            step(1, &[("y", role)], &[]),
            step(2, &[("x", CaseInputRole::Required)], &["z"]),
        ];
        let init = vec![("x".to_owned(), vec![1])];
        let goals = vec![1];
        let mut case = case(CaseShape::Flow(CaseFlow { goals, init, steps }));
        let end =
            if check_negation { ScriptedEnd::Denied } else { ScriptedEnd::Success("{\"y\":7}".to_owned()) };
        let acts = vec![ScriptedAttempt { takes: SECOND, end }];
        let _ = case.scripts.insert((0, "0".to_owned()), AttemptScript { acts });
        let found = predicted(&case);
        assert_eq!(found.end.status, status, "{role:?} {check_negation}");
        assert_eq!(found.items["w2#0"], PredictedEnd::Missing, "no goal needs it");
        let reached = found.items["w1#0"] == PredictedEnd::Succeeded;
        assert_eq!(reached, status == "completed");
    }
}

#[test]
fn most_cases_have_an_answer() {
    let drawn = (0..600).map(|seed| JobCase::drawn(&mut SeededRandom::new(seed)));
    let open = drawn.filter(|case| predict(case).is_none()).count();
    assert!(open < 200, "{open} of 600");
}
