//! Tests of the rules: which rule decides, and what `retry_on` and `retry_statuses` select.

use core::time::Duration;

use super::*;

fn exit(code: i32) -> Failure<'static> {
    Failure::new(FailureCause::Exit(code))
}

fn on_exit(code: i32, then: RuleAction) -> Rule<()> {
    let when = Conditions { exit_codes: vec![code], ..Conditions::default() };
    Rule::new(when, then)
}

#[test]
fn without_rules_the_class_decides() {
    let rules = Rules::<()>::NONE;
    assert_eq!(rules.judge(&exit(1)).then, RuleAction::Retry);
    let refused = rules.judge(&exit(127));
    assert_eq!((refused.then, refused.reason), (RuleAction::Stop, Some(Reason::Permanent)));
}

#[test]
fn the_first_rule_that_matches_decides() {
    let rules = Rules {
        table: vec![
            on_exit(3, RuleAction::Skip),
            on_exit(3, RuleAction::Retry),
            on_exit(127, RuleAction::Retry),
            on_exit(4, RuleAction::Hold),
            on_exit(5, RuleAction::DeadLetter),
        ],
        ..Rules::NONE
    };
    let judged = |code| {
        let judgement = rules.judge(&exit(code));
        (judgement.rule, judgement.then, judgement.reason)
    };
    assert_eq!(judged(3), (Some(0), RuleAction::Skip, Some(Reason::Rule)));
    assert_eq!(judged(127), (Some(2), RuleAction::Retry, None));
    assert_eq!(judged(4), (Some(3), RuleAction::Hold, None));
    assert_eq!(judged(5), (Some(4), RuleAction::DeadLetter, Some(Reason::Rule)));
    assert_eq!(judged(6), (None, RuleAction::Retry, None));
}

#[test]
fn all_conditions_of_a_rule_must_hold() {
    let when = Conditions {
        exit_codes: vec![1, 2],
        classes: vec![ClassName::Kind(FailureKind::Timeout)],
        ..Conditions::default()
    };
    let rules = Rules::<()> { table: vec![Rule::new(when, RuleAction::Stop)], ..Rules::NONE };
    assert_eq!(rules.judge(&exit(2).text("timed out")).then, RuleAction::Stop);
    assert_eq!(rules.judge(&exit(2).text("refused")).then, RuleAction::Retry);
    assert_eq!(rules.judge(&exit(3).text("timed out")).then, RuleAction::Retry);
}

#[test]
fn a_rule_without_conditions_matches_everything() {
    let rules =
        Rules::<()> { table: vec![Rule::new(Conditions::default(), RuleAction::Stop)], ..Rules::NONE };
    assert!(rules.table[0].when().always());
    assert_eq!(rules.judge(&exit(1)).reason, Some(Reason::Rule));
    assert_eq!(rules.judge(&Failure::new(FailureCause::Interrupted)).reason, Some(Reason::Rule));
}

#[test]
fn retry_on_narrows_what_is_transient_and_widens_nothing() {
    let rules = Rules::<()> { retry_on: vec![RetryOn::Kind(FailureKind::Network)], ..Rules::NONE };
    assert_eq!(rules.judge(&exit(1).text("connection reset")).then, RuleAction::Retry);
    let other = rules.judge(&exit(1).text("syntax error"));
    assert_eq!((other.then, other.class), (RuleAction::Stop, FailureClass::Permanent));
    assert_eq!(rules.judge(&exit(127).text("connection reset")).then, RuleAction::Stop);
}

#[test]
fn statuses_become_transient_when_listed_or_by_rate_limit() {
    let listed = Rules::<()> { retry_statuses: vec![429..=429, 420..=425], ..Rules::NONE };
    assert_eq!(listed.judge(&Failure::status(429)).class, FailureClass::Transient);
    assert_eq!(listed.judge(&Failure::status(423)).then, RuleAction::Retry);
    assert_eq!(listed.judge(&Failure::status(404)).then, RuleAction::Stop);
    let by_kind = Rules::<()> { retry_on: vec![RetryOn::Kind(FailureKind::RateLimit)], ..Rules::NONE };
    assert_eq!(by_kind.judge(&Failure::status(429)).then, RuleAction::Retry);
    assert_eq!(by_kind.judge(&Failure::status(503)).then, RuleAction::Stop);
}

#[test]
fn a_status_in_retry_statuses_needs_no_entry_in_retry_on() {
    let rules = Rules::<()> {
        retry_on: vec![RetryOn::Kind(FailureKind::Network)],
        retry_statuses: vec![423..=423],
        ..Rules::NONE
    };
    assert_eq!(rules.judge(&Failure::status(423)).then, RuleAction::Retry);
    assert_eq!(rules.judge(&Failure::status(503)).then, RuleAction::Stop);
}

#[test]
fn a_rule_that_retries_honours_retry_after() {
    let rules =
        Rules::<()> { table: vec![Rule::new(Conditions::default(), RuleAction::Retry)], ..Rules::NONE };
    let asked = Failure::status(404).retry_after(Some(Duration::from_secs(3)));
    assert_eq!(rules.judge(&asked).class, FailureClass::Throttled);
}

#[test]
fn a_retried_failure_with_a_retry_after_is_throttled() {
    let asked = |status| Failure::status(status).retry_after(Some(Duration::from_secs(3)));
    let rules = Rules::<()>::NONE;
    assert_eq!(rules.judge(&asked(503)).class, FailureClass::Throttled);
    assert_eq!(rules.judge(&asked(404)).class, FailureClass::Permanent);
    assert_eq!(rules.judge(&Failure::status(503)).class, FailureClass::Transient);
}

#[cfg(feature = "regex")]
#[test]
fn a_pattern_matches_only_the_stream_it_names() {
    let when = Conditions { stderr: Some(Pattern::new("dead(lock|line)").unwrap()), ..Conditions::default() };
    let rules = Rules::<()> {
        table: vec![Rule::new(when, RuleAction::Skip)],
        retry_on: vec![RetryOn::Pattern(Pattern::new("^busy").unwrap())],
        ..Rules::NONE
    };
    assert_eq!(rules.judge(&exit(1).text("a deadlock")).then, RuleAction::Skip);
    let in_output = Failure { output: "a deadlock", ..exit(1) };
    assert_eq!(rules.judge(&in_output).then, RuleAction::Stop);
    assert_eq!(rules.judge(&exit(1).text("busy now")).then, RuleAction::Retry);
    assert_eq!(rules.judge(&exit(1).text("not busy")).then, RuleAction::Stop);
}
