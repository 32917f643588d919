//! Items on hold: they use nothing up, their deadlines run, and all of them are released in the end.

use undaunted_engine::event::{Event, JobEvent};
use undaunted_engine::input::Input;
use undaunted_policy::{FailureCause, Reason};

use crate::fixture::{BREAKER, EXIT_1, TestedJob, at, breaker_map, digest, item_at, open, opened, secs};

#[test]
fn a_hold_uses_no_attempt_no_delay_budget_and_no_pool() {
    let text = format!("retry_budget: 9\n{}", breaker_map(3, "", ", retry_budget: 5s, initial_delay: 2s"));
    let mut test = opened(&text, 3);
    test.at(2);
    let before = (test.totals(), test.job.pool, test.active(0).progress());
    test.start();
    assert_eq!(test.held(), [0, 1, 2]);
    let after = (test.totals(), test.job.pool, test.active(0).progress());
    assert_eq!(after, before);
    assert_eq!(test.at(60).start().started_items(), [0]);
    let retrying = test.fail(0, EXIT_1).scheduled().unwrap();
    assert_eq!(retrying.arithmetic.spent_before, secs(2), "58s held are not spent");
    assert_eq!(retrying.arithmetic.retry, 2);
}

#[test]
fn downtime_during_a_hold_is_not_charged_to_the_delay_budget() {
    let mut test = opened(&breaker_map(3, "", ", retry_budget: 5s"), 3);
    test.at(1).start().at(1000);
    assert_eq!(test.crash_and_resume().lines(), ["job_resumed run 2"]);
    assert_eq!(test.held(), [0, 1, 2]);
    assert_eq!(test.finish().outcome(), ("completed", None, [3, 0, 0]));
}

#[test]
fn a_hold_frees_its_slot() {
    // The second command has no breaker; held items must not keep it from running.
    let mut test = TestedJob::started_over(&format!("{}    - shell: b\n", breaker_map(3, "", "")), 4);
    test.succeed(0).fail_all(1..3).at(1).start().fail(1, EXIT_1);
    assert_eq!(test.breaker(BREAKER).word(), "open");
    test.fail(2, EXIT_1).at(2).start().start();
    let step = &test.job.steps[0];
    assert_eq!(step.running, 1, "of the second command");
    assert_eq!(test.held(), [1, 2, 3]);
}

#[test]
fn with_when_open_fail_a_start_stops_with_circuit_open_and_uses_no_attempt() {
    let mut test = opened(&breaker_map(3, ", when_open: fail", ""), 4);
    assert_eq!(
        test.start().lines(),
        [
            "text_kept `The circuit breaker is open (`payments`)`",
            "command_stopped 0/3 0.0: circuit_open",
            "item_dead_lettered 0/3 0.0: circuit_open"
        ]
    );
    assert_eq!(test.attempts(), 3);
    test.at(1).start();
    let (status, reason, items) = test.outcome();
    assert_eq!((status, reason, items), ("partial", Some(Reason::CircuitOpen), [0, 4, 0]));
    assert_eq!(test.attempts(), 3, "no attempt was used");
}

#[test]
fn with_when_open_fail_the_handler_runs() {
    let text = format!("{}      on_failure: {{shell: mend}}\n", breaker_map(3, ", when_open: fail", ""));
    let mut test = opened(&text, 3);
    assert_eq!(test.at(1).start().lines()[1], "command_stopped 0/0 0.1: circuit_open, handler 1");
    assert_eq!(test.finish().outcome(), ("completed", None, [3, 0, 0]));
    let error = test.report().error.unwrap();
    assert!(error.ends_with("; last error: exit status 1"), "it stays in the report: {error}");
}

#[test]
fn with_when_open_fail_a_probe_starts_after_the_recovery_timeout() {
    let mut test =
        opened(&breaker_map(3, ", when_open: fail", ", initial_delay: 40s").replace("60s", "30s"), 3);
    let lines_first = test.at(40).start().lines();
    assert_eq!(lines_first[0], "attempt_started 0/0 0.2 as 4, a probe");
    assert!(
        lines_first.contains(&"item_dead_lettered 0/1 0.1: circuit_open".to_owned()),
        "another one is refused meanwhile: {lines_first:?}"
    );
}

#[test]
fn an_item_held_longer_than_max_hold_stops_with_circuit_open() {
    let mut test = opened(&breaker_map(3, ", max_hold: 20s", ""), 4);
    test.start().at(1).start();
    assert_eq!(test.next_wake(), Some(at(20)), "of the one held first");
    assert_eq!(test.at(19).wake().lines(), [""; 0]);
    test.at(20);
    assert_eq!(
        test.wake().lines()[1..],
        ["command_stopped 0/3 0.0: circuit_open", "item_dead_lettered 0/3 0.0: circuit_open"]
    );
    assert_eq!(test.next_wake(), Some(at(21)));
    assert_eq!(test.at(21).wake().outcome(), ("partial", Some(Reason::CircuitOpen), [0, 4, 0]));
    assert_eq!(test.attempts(), 3);
}

#[test]
fn an_item_held_longer_than_max_hold_runs_its_handler() {
    let text = format!("{}      on_failure: {{shell: mend}}\n", breaker_map(3, ", max_hold: 20s", ""));
    let mut test = opened(&text, 3);
    test.at(1).start().at(21);
    assert_eq!(test.wake().lines()[1], "command_stopped 0/0 0.1: circuit_open, handler 1");
    assert_eq!(test.finish().outcome().2, [3, 0, 0]);
}

/// The workflow with an item deadline.
fn limited(seconds: u64, text: &str) -> String {
    let limit = format!("  timeout_config: {{agent_timeout_secs: {seconds}}}\n  agent_template:");
    text.replace("  agent_template:", &limit)
}

#[test]
fn held_time_counts_to_the_deadline_of_an_item_from_its_first_start() {
    let mut test = TestedJob::over(&limited(30, &breaker_map(3, "", "")), 4);
    test.at(100).start().fail_all(0..3).start().at(101).start();
    assert_eq!(test.held(), [0, 1, 2, 3]);
    assert_eq!(test.next_wake(), Some(at(130)));
    assert_eq!(test.at(130).wake().lines()[1], "command_stopped 0/0 0.1: deadline");
    assert_eq!(test.held(), [3], "it has not started, so it has its time");
    let error = test.report().error.unwrap();
    assert!(error.contains("the breaker `payments` was open"), "{error}");
    assert_eq!(test.finish().outcome(), ("partial", Some(Reason::Deadline), [1, 3, 0]));
}

#[test]
fn held_time_counts_to_the_deadline_of_the_job() {
    let mut test = opened(&format!("deadline: 40s\n{}", breaker_map(3, "", "")), 5);
    test.start().at(1).start();
    assert_eq!(test.next_wake(), Some(at(40)));
    let lines = test.at(40).wake().lines();
    assert_eq!(lines[0], "job_stopping deadline");
    assert!(lines.contains(&"item_dead_lettered 0/2 0.1: deadline".to_owned()), "{lines:?}");
    // It was held before its first attempt.
    assert!(lines.contains(&"item_skipped 0/4: deadline".to_owned()), "{lines:?}");
    assert_eq!(test.outcome(), ("failed", Some(Reason::Deadline), [0, 3, 2]));
    let error = test.report().error.unwrap();
    let expected = "The deadline passed while the breaker `payments` was open; last error: exit status 1";
    assert_eq!(error, expected);
}

#[test]
fn clean_suspension_does_not_count_to_a_hold_and_downtime_does() {
    let mut test = opened(&limited(50, &breaker_map(3, ", max_hold: 20s", "")), 3);
    test.at(1).start().at(11).suspend();
    assert_eq!(test.next_wake(), None);
    test.at(1011).crash_and_resume();
    assert_eq!(test.held(), [0, 1, 2]);
    assert_eq!(test.hold_expiry(), Some(at(1021)));
    test.at(1012).crash_and_resume();
    assert_eq!(test.hold_expiry(), Some(at(1021)), "downtime counts");
}

#[test]
fn a_pause_does_not_count_to_a_hold() {
    let mut test = opened(&breaker_map(3, ", max_hold: 20s", ""), 3);
    test.at(1).start().at(11).pause();
    assert_eq!(test.next_wake(), None);
    assert_eq!(test.at(500).wake().lines(), [""; 0]);
    assert_eq!(test.ready(), [], "nor does one probe");
    test.at(511).unpause();
    assert_eq!(test.held(), [0, 1, 2]);
    assert_eq!(test.hold_expiry(), Some(at(521)));
    test.crash_and_resume();
    assert_eq!(test.hold_expiry(), Some(at(521)));
}

#[test]
fn a_hold_expires_at_the_deadline_as_moved_by_a_pause() {
    let mut test = opened(&limited(30, &breaker_map(3, "", "")), 3);
    test.at(1).start().at(11).pause().at(111).unpause();
    assert_eq!(test.hold_expiry(), Some(at(130)));
    assert_eq!(test.at(130).wake().lines()[1], "command_stopped 0/0 0.1: deadline");
}

/// A command whose exit status 3 means that its target is down.
fn rule() -> String {
    format!("retry_budget: 9\n{}", breaker_map(3, "", ", rules: [{exit_code: 3, then: hold}]"))
}

#[test]
fn a_rule_that_holds_trips_the_breaker_and_uses_an_attempt_and_a_unit_of_the_pool() {
    let mut test = TestedJob::started_over(&rule(), 3);
    assert_eq!(
        test.fail(0, FailureCause::Exit(3)).lines(),
        ["attempt_failed 0/0 0.1 Exit(3)", "held 0/0 0.1 until +60s"]
    );
    assert_eq!(test.transitions(), ["tripped until +60s"]);
    let active = test.active(0);
    assert_eq!((active.attempts, active.progress().retries), (1, 1));
    assert_eq!(active.progress().spent, secs(0), "no delay");
    assert_eq!((active.charged, test.job.pool.unwrap().consumed), (1, 1));
    assert_eq!(test.totals(), (3, 0, secs(0)));
    test.at(60).succeed(1).succeed(2);
    assert_eq!(
        test.start().lines()[..2],
        ["released 0/0 0.1 after 60s", "attempt_started 0/0 0.2 as 4, a probe"]
    );
    assert_eq!(test.job.pool.unwrap().consumed, 1, "charged once");
}

#[test]
fn a_rule_that_holds_counts_towards_the_attempts() {
    let mut test = TestedJob::started_over(&rule().replace("attempts: 9", "attempts: 1"), 1);
    test.fail(0, FailureCause::Exit(3)).at(60).start().fail(0, FailureCause::Exit(3));
    assert_eq!(test.outcome(), ("partial", Some(Reason::Attempts), [0, 1, 0]));
    assert_eq!(test.breaker(BREAKER).until(), Some(at(120)), "it tripped");
}

#[test]
fn a_rule_that_holds_is_refused_when_the_pool_is_used_up() {
    let mut test = TestedJob::started_over(&rule().replace("retry_budget: 9", "retry_budget: 1"), 2);
    test.fail(0, FailureCause::Exit(3));
    assert_eq!(
        test.fail(1, FailureCause::Exit(3)).lines().last().unwrap(),
        "item_dead_lettered 0/1 0.1: job_budget_exhausted"
    );
}

#[test]
fn a_rule_that_holds_a_start_from_before_the_opening_does_not_trip_again() {
    let mut test = TestedJob::started_over(&rule(), 3);
    test.fail(0, FailureCause::Exit(3));
    let open = test.breaker(BREAKER).clone();
    test.at(30);
    assert_eq!(
        test.fail(1, FailureCause::Exit(3)).lines()[1..],
        ["held 0/1 0.1 until +90s"],
        "the job does not know that it came too late to trip the breaker"
    );
    assert_eq!(test.breaker(BREAKER), &open, "its next probe stays");
    test.at(60);
    for item in [0, 1] {
        assert_eq!(test.start().started_items(), [item]);
        test.succeed(item);
    }
    // A third start from before the opening ends when the breaker is half open.
    let half_open = test.breaker(BREAKER).clone();
    test.fail(2, FailureCause::Exit(3));
    assert_eq!(test.breaker(BREAKER), &half_open);
    assert_eq!(test.start().started_items(), [2]);
    assert_eq!(test.succeed(2).outcome(), ("completed", None, [3, 0, 0]));
}

#[test]
fn an_item_held_by_its_rule_after_the_breaker_has_closed_starts_at_once() {
    let text = rule().replace("recovery_timeout", "half_open_max_calls: 1, recovery_timeout");
    let mut test = TestedJob::started_over(&text, 2);
    test.fail(0, FailureCause::Exit(3)).at(60).start().succeed(0);
    assert_eq!(test.breaker(BREAKER).word(), "closed");
    test.fail(1, FailureCause::Exit(3));
    assert_eq!(test.breaker(BREAKER).word(), "closed", "it is stale");
    assert_eq!(test.held(), [1]);
    assert_eq!(test.start().started_items(), [1]);
    assert_eq!(test.succeed(1).outcome(), ("completed", None, [2, 0, 0]));
}

#[test]
fn a_release_is_spread_over_time_and_complete() {
    let mut test = opened(&breaker_map(50, ", half_open_max_calls: 1", ""), 50);
    test.fail_all(3..50).at(1).start();
    assert_eq!(test.held().len(), 50);
    assert_eq!(test.at(60).start().started_items(), [0]);
    test.succeed(0);
    assert_eq!(test.breaker(BREAKER).word(), "closed");
    let mut times = Vec::new();
    while !test.held().is_empty() {
        for item in test.start().started_items() {
            times.push(test.now);
            test.succeed(item);
        }
        test.now = test.next_wake().unwrap_or(test.now);
    }
    assert_eq!(times.len(), 49);
    let mut apart = times.clone();
    apart.dedup();
    assert!(apart.len() > 40, "one after the other: {}", apart.len());
    assert!(times.iter().all(|time| *time <= at(65)), "{times:?}");
    assert_eq!(test.outcome(), ("completed", None, [50, 0, 0]));
}

#[test]
fn held_items_start_before_items_that_never_started() {
    let mut test = opened(&breaker_map(4, ", half_open_max_calls: 1", ""), 20);
    test.fail(3, EXIT_1).start().at(1).start();
    assert_eq!(test.held(), [0, 1, 2, 3, 4, 5, 6, 7]);
    test.at(60).start().succeed(4);
    assert_eq!(test.breaker(BREAKER).word(), "closed");
    let mut order = Vec::new();
    while order.len() < 15 {
        let now = test.start().started_items();
        for item in &now {
            test.succeed(*item);
        }
        order.extend(now);
        test.now = test.next_wake().unwrap_or(test.now);
    }
    assert_eq!(order[..7], [5, 6, 7, 0, 1, 2, 3], "{order:?}");
}

#[test]
fn a_crash_keeps_holds_and_the_breaker() {
    let mut test = opened(&breaker_map(3, ", max_hold: 90s", ""), 5);
    test.start().at(1).start();
    let (live, breaker) = (digest(&test.job), test.breaker(BREAKER).clone());
    test.at(30);
    let found = test.replayed();
    assert_eq!(digest(&found), live);
    let records = test.crash_and_resume().records();
    let Event::Job(JobEvent::Resumed(resumed)) = &records[0].event else {
        panic!("{records:?}");
    };
    assert_eq!(resumed.work.held, Some(5));
    assert_eq!(test.breaker(BREAKER), &breaker, "with the same instant");
    assert_eq!(test.next_wake(), Some(at(60)));
    assert_eq!(test.at(60).start().started_items(), [3]);
    assert_eq!(test.finish().outcome(), ("completed", None, [5, 0, 0]));
}

#[test]
fn a_probe_survives_the_death_of_its_process() {
    let mut test = open(3, 5);
    test.at(1).start().at(61);
    let probe = test.start().started_items();
    test.at(62).crash_and_resume();
    assert_eq!(test.ready(), [], "one at a time");
    test.succeed(probe[0]);
    assert_eq!(test.start().started_items().len(), 1);
}

#[test]
fn a_release_is_completed_after_a_crash() {
    let mut test = opened(&breaker_map(8, ", half_open_max_calls: 1", ""), 20);
    test.fail_all(3..8).at(1).start().start().at(60);
    let [probe] = test.start().started_items()[..] else {
        panic!("no probe");
    };
    test.succeed(probe);
    assert!(!test.held().is_empty());
    assert_eq!(test.crash_and_resume().finish().outcome(), ("completed", None, [20, 0, 0]));
}

#[test]
fn a_cancel_skips_held_items() {
    let mut test = open(3, 5);
    test.start().at(1).start();
    let lines = test.cancel().lines();
    let skipped = lines.iter().filter(|line| line.starts_with("item_skipped"));
    assert_eq!(skipped.count(), 5, "{lines:?}");
    assert_eq!(test.outcome(), ("cancelled", Some(Reason::Cancelled), [0, 0, 5]));
}

#[test]
fn an_exceeded_tolerance_skips_held_items() {
    let text = breaker_map(4, "", ", rules: [{exit_code: 3, then: dead_letter}]")
        .replace("  agent_template:", "  error_policy: {max_failures: 1}\n  agent_template:");
    let mut test = opened(&text, 6);
    test.start().at(1).start();
    assert_eq!(test.held(), [0, 1, 2, 4, 5]);
    let lines = test.fail(3, FailureCause::Exit(3)).lines();
    assert!(lines.contains(&"item_skipped 0/0: tolerance".to_owned()), "{lines:?}");
    assert_eq!(test.outcome(), ("failed", Some(Reason::Tolerance), [0, 1, 5]));
}

#[test]
fn a_redriven_dead_letter_asks_its_breaker_again() {
    let mut test = opened(&breaker_map(3, ", when_open: fail", ""), 3);
    assert_eq!(test.at(1).start().outcome().2, [0, 3, 0]);
    let redrive = Input::Redrive { items: vec![item_at(0), item_at(1)], reduce: false, every: None };
    test.at(30).feed(&redrive).start();
    assert_eq!(test.outcome(), ("partial", Some(Reason::CircuitOpen), [0, 3, 0]), "it is still open");
    test.at(60).redrive([item_at(0)]);
    assert_eq!(test.start().lines()[0], "attempt_started 0/0 0.1 as 4, a probe", "a new round");
    assert_eq!(test.succeed(0).outcome().2, [1, 2, 0]);
}

#[test]
fn a_dead_letter_redriven_while_the_breaker_is_open_is_held() {
    let mut test = opened(&breaker_map(3, ", max_hold: 5s", ""), 3);
    assert_eq!(test.at(1).start().at(6).wake().outcome().2, [0, 3, 0]);
    test.at(58).redrive([item_at(0), item_at(1), item_at(2)]).start();
    assert_eq!(test.held(), [0, 1, 2]);
    assert_eq!(test.finish().outcome(), ("completed", None, [3, 0, 0]));
}
