//! Breakers in a job: what opens them, what they admit, and which item probes.

use undaunted_engine::event::{Event, ItemEvent};
use undaunted_policy::{CircuitState, FailureCause, FailureClass};

use crate::fixture::{BREAKER, EXIT_1, TERM, TestedJob, at, breaker_map, event_lines, open, secs};

/// Starts the only probe, which succeeds, and returns its item.
fn probe_well(test: &mut TestedJob) -> u32 {
    let [item] = test.start().started_items()[..] else {
        panic!("one probe at a time");
    };
    test.succeed(item);
    item
}

#[test]
fn a_breaker_opens_after_so_many_failures_in_a_row() {
    let mut test = TestedJob::started_over(&breaker_map(3, "", ""), 3);
    test.fail(0, EXIT_1).fail(1, FailureCause::Timeout);
    assert_eq!(test.breaker(BREAKER).failures(), 2);
    test.at(1);
    assert_eq!(test.fail(2, FailureCause::Signal(9)).lines()[0], "attempt_failed 0/2 0.1 Signal(9)");
    assert_eq!(test.transitions(), ["opened until +61s"]);
    assert_eq!(test.breaker(BREAKER).until(), Some(at(61)));
}

#[test]
fn a_success_resets_the_count_of_failures() {
    let mut test = TestedJob::started_over(&breaker_map(3, "", ""), 6);
    test.fail(0, EXIT_1).fail(1, EXIT_1).succeed(2);
    assert_eq!(test.breaker(BREAKER).failures(), 0);
    test.start().fail(3, EXIT_1).fail(4, EXIT_1);
    assert_eq!(test.breaker(BREAKER).word(), "closed");
}

#[test]
fn a_status_below_500_resets_the_count_and_one_above_counts() {
    let mut test = TestedJob::started_over(&breaker_map(4, "", ""), 4);
    test.fail(0, EXIT_1).fail(1, FailureCause::Status(503));
    assert_eq!(test.breaker(BREAKER).failures(), 2);
    test.fail(2, FailureCause::Status(404));
    assert_eq!(test.breaker(BREAKER).failures(), 0);
}

#[test]
fn permanent_and_interrupted_attempts_do_not_count() {
    let mut test = TestedJob::started_over(&breaker_map(5, "", ""), 5);
    test.fail(0, EXIT_1).fail(1, FailureCause::Exit(127));
    test.fail(2, FailureCause::Interrupted).fail(3, FailureCause::Other(FailureClass::Permanent));
    assert_eq!(test.breaker(BREAKER).failures(), 1);
    test.feed(&undaunted_engine::input::Input::Cancel).fail(4, TERM);
    assert_eq!(test.breaker(BREAKER).failures(), 1, "it was cancelled");
    assert_eq!(test.outcome().0, "cancelled");
}

#[test]
fn a_failure_that_a_rule_makes_permanent_does_not_count() {
    let text = breaker_map(2, "", ", rules: [{exit_code: 3, then: dead_letter}]");
    let mut test = TestedJob::started_over(&text, 2);
    test.fail(0, EXIT_1).fail(1, FailureCause::Exit(127));
    assert_eq!(test.breaker(BREAKER).failures(), 1);
}

#[test]
fn an_open_breaker_gates_first_attempts_too() {
    let mut test = open(3, 5);
    assert_eq!(test.start().lines(), ["held 0/3 0.0 until +60s", "held 0/4 0.0 until +60s"]);
    test.at(1);
    assert_eq!(
        test.start().lines(),
        ["held 0/0 0.1 until +60s", "held 0/1 0.1 until +60s", "held 0/2 0.1 until +60s"]
    );
    assert_eq!(test.attempts(), 3, "nothing was attempted");
    test.at(59);
    assert_eq!(test.ready(), []);
    assert_eq!(test.next_wake(), Some(at(60)));
}

#[test]
fn no_more_unstarted_items_are_held_than_could_run() {
    let mut test = open(3, 1000);
    test.start();
    assert_eq!(test.held(), [3, 4, 5]);
    test.start();
    assert_eq!(test.held(), [3, 4, 5], "the others wait behind them");
    test.at(1).start();
    assert_eq!(test.held(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(test.ready(), []);
}

#[test]
fn results_of_starts_from_before_the_opening_are_ignored() {
    let mut test = TestedJob::started_over(&breaker_map(6, "", ""), 6);
    test.fail_all(0..3);
    let open = test.breaker(BREAKER).clone();
    test.at(10).succeed(3);
    assert_eq!(test.breaker(BREAKER), &open, "a success does not close it");
    test.fail(4, EXIT_1);
    assert_eq!(test.breaker(BREAKER), &open, "a failure does not extend it");
    assert_eq!(test.at(60).start().started_items(), [0]);
    let probed = test.breaker(BREAKER).clone();
    test.fail(5, EXIT_1);
    assert_eq!(test.breaker(BREAKER), &probed, "it is not the probe's result");
}

#[test]
fn an_old_failure_does_not_count_after_the_breaker_has_closed() {
    let mut test = TestedJob::started_over(&breaker_map(4, ", half_open_max_calls: 1", ""), 4);
    test.fail_all(0..3).at(60);
    let _ = probe_well(&mut test);
    assert_eq!(test.breaker(BREAKER).word(), "closed");
    test.fail(3, EXIT_1);
    assert_eq!(test.breaker(BREAKER).failures(), 0);
}

#[test]
fn probes_are_made_one_at_a_time_and_three_successes_close_the_breaker() {
    let mut test = open(3, 9);
    test.start().at(1).start().at(61);
    assert_eq!(
        test.start().lines(),
        ["released 0/3 0.0 after 61s", "attempt_started 0/3 0.1 as 4, a probe"],
        "one that has all its attempts left"
    );
    assert_eq!(test.transitions(), ["opened until +60s", "half_opened"]);
    assert_eq!(test.ready(), [], "one is under way");
    test.succeed(3);
    assert_eq!(test.breaker(BREAKER).word(), "half_open");
    let second = probe_well(&mut test);
    assert_eq!(second, 4);
    assert_eq!(test.breaker(BREAKER).word(), "half_open");
    let third = test.start().started_items();
    assert_eq!(third, [5]);
    test.succeed(5);
    assert_eq!(test.transitions(), ["closed"], "{:?}", test.breaker(BREAKER));
    assert_eq!(test.attempts(), 6, "three failures and three probes");
}

#[test]
fn a_probe_that_fails_opens_the_breaker_again() {
    let mut test = open(3, 9);
    test.start().at(60);
    let _ = probe_well(&mut test);
    test.at(65);
    let [item] = test.start().started_items()[..] else {
        panic!("no probe");
    };
    test.at(70);
    let _ = test.transitions();
    test.fail(item, EXIT_1);
    assert_eq!(test.transitions(), ["opened until +130s"]);
    test.at(129).start();
    assert_eq!(test.running(), 0);
    // Earlier successful probes do not count.
    test.at(130);
    for _ in 0..2 {
        let _ = probe_well(&mut test);
        assert_eq!(test.breaker(BREAKER).word(), "half_open");
    }
    let _ = probe_well(&mut test);
    assert_eq!(test.breaker(BREAKER).word(), "closed");
}

#[test]
fn an_inconclusive_probe_is_followed_by_another() {
    let mut test = open(3, 9);
    test.at(60).start();
    assert_eq!(test.held(), [0, 1, 2], "others have more attempts left");
    for cause in [FailureCause::Interrupted, FailureCause::Exit(127)] {
        let [item] = test.start().started_items()[..] else {
            panic!("no probe");
        };
        test.fail(item, cause);
        let phase = test.breaker(BREAKER).breaker.circuit();
        assert_eq!(phase, CircuitState::HalfOpen { successes: 0, probing: false });
    }
    assert_eq!(test.start().started_items().len(), 1);
}

#[test]
fn the_held_item_with_the_most_attempts_left_probes() {
    let mut test = TestedJob::started_over(&breaker_map(2, ", half_open_max_calls: 9", ""), 3);
    test.succeed(1);
    // The first has failed twice, the last once.
    test.fail(0, EXIT_1).at(1).start().fail(0, EXIT_1).fail(2, EXIT_1).at(10).start();
    assert_eq!(test.held(), [0, 2]);
    // Equal numbers of attempts left are broken by input order.
    for (now, expected) in [(61, 2), (121, 0), (181, 2), (241, 0)] {
        assert_eq!(test.at(now).start().started_items(), [expected], "at {now}s");
        test.fail(expected, EXIT_1).pass(secs(2)).start();
        assert_eq!(test.held(), [0, 2]);
    }
}

#[test]
fn a_long_outage_uses_up_no_items_attempts() {
    // Ten items with ten attempts each: the probes of an hour are shared by all of them.
    let mut test = open(10, 10);
    test.fail_all(3..10);
    for minute in 1..60 {
        test.at(65 * minute);
        let [item] = test.start().started_items()[..] else {
            panic!("one probe at a time");
        };
        test.fail(item, EXIT_1).pass(secs(2)).start();
    }
    let made: Vec<u32> = (0..10).map(|item| test.active(item).attempts).collect();
    let (least, most) = (made.iter().min().unwrap(), made.iter().max().unwrap());
    assert!(most - least <= 1, "{made:?}");
    assert!(test.attempts() > 40, "{made:?}");
    assert_eq!(test.outcome().2, [0, 0, 0]);
}

#[test]
fn of_commands_with_different_limits_the_one_with_more_attempts_left_probes() {
    let text = "
mode: mapreduce
map:
  input: a.json
  max_parallel: 2
  agent_template:
    - shell: first
      breaker: {name: payments, failure_threshold: 1}
      retry_config: {attempts: 2, backoff: fixed}
    - shell: second
      breaker: {name: payments, failure_threshold: 1}
      retry_config: {attempts: 20, backoff: fixed}
";
    let mut test = TestedJob::started_over(text, 4);
    test.succeed(1).start();
    // The second item is at its second command and has failed once: 20 attempts are left.
    test.fail(1, EXIT_1).fail(0, EXIT_1).start();
    assert_eq!(test.held(), [2, 3]);
    test.at(2).start();
    assert_eq!(test.held(), [0, 1, 2, 3]);
    assert_eq!(test.at(62).start().started_items(), [1]);
}

#[test]
fn an_item_that_never_started_probes_if_it_has_the_most_attempts_left() {
    let mut test = TestedJob::over(&breaker_map(1, "", ""), 2);
    for _ in 0..3 {
        test.start().fail(0, EXIT_1).pass(secs(1));
    }
    assert_eq!(test.breaker(BREAKER).word(), "open");
    test.at(5).start();
    assert_eq!(test.held(), [0], "there is room for one");
    assert_eq!(test.at(62).start().started_items(), [1]);
    test.succeed(1);
    assert_eq!(test.start().started_items(), [0], "there is no other item");
}

#[test]
fn a_command_without_a_bound_has_the_most_attempts_left() {
    let mut test = opened_alone(&breaker_map(1, "", "").replace("attempts: 9", "attempts: unlimited"));
    test.at(62).start();
    assert_eq!(test.running(), 1);
}

/// One item at a time; the first of two has opened the breaker.
fn opened_alone(text: &str) -> TestedJob {
    let mut test = TestedJob::over(text, 2);
    for _ in 0..3 {
        test.start().fail(0, EXIT_1).pass(secs(1));
    }
    test.start();
    test
}

#[test]
fn a_command_that_names_no_breaker_is_not_gated() {
    let mut test = TestedJob::started_over(&format!("{}    - shell: b\n", breaker_map(2, "", "")), 4);
    test.succeed(0).start().fail(1, EXIT_1).start().fail(2, EXIT_1).at(1).start().fail(1, EXIT_1);
    assert_eq!(test.breaker(BREAKER).word(), "open");
    assert_eq!(test.succeed(0).lines()[1], "item_succeeded 0/0");
}

/// A request with an `on_failure` handler, then a shell command.
const REQUEST: &str = "
mode: mapreduce
map:
  input: a.json
  agent_template:
    - http: {url: 'http://pay.test/${item.id}'}
      breaker: {failure_threshold: 1}
      on_failure: {shell: mend}
    - shell: b
";

#[test]
fn a_shell_command_does_not_ask_the_breaker_of_the_request_before_it() {
    let mut test = TestedJob::started_over(REQUEST, 2);
    test.fail(0, FailureCause::Status(503));
    assert_eq!(test.breaker("http://pay.test").word(), "open");
    test.succeed(1);
    let records = test.start().records();
    assert_eq!(
        event_lines(&records),
        ["attempt_started 0/0 1.1 as 3", "attempt_started 0/1 2.1 as 4"],
        "nothing is held"
    );
    let passes = records.iter().filter_map(|record| match &record.event {
        Event::Item(ItemEvent::AttemptStarted(started)) => started.pass.as_ref(),
        _ => None,
    });
    assert_eq!(passes.count(), 0);
    let open = test.breaker("http://pay.test").clone();
    test.fail(0, FailureCause::Timeout).succeed(1);
    assert_eq!(test.breaker("http://pay.test"), &open, "their ends say nothing about it");
}

#[test]
fn an_origin_whose_breaker_has_no_journal_yet_has_the_settings_of_the_command_that_runs() {
    let mut test = TestedJob::over(REQUEST, 1);
    let origin = "http://pay.test";
    assert_eq!(test.job.breaker_settings(origin).failure_threshold, 5);
    test.start();
    assert_eq!(test.replayed().breaker_settings(origin).failure_threshold, 1);
    assert_eq!(test.job.breaker_settings("http://mail.test").failure_threshold, 5);
}

#[test]
fn the_handler_of_a_request_runs_although_the_request_has_opened_its_breaker() {
    let mut test = TestedJob::started_over(REQUEST, 1);
    test.fail(0, FailureCause::Status(503));
    assert_eq!(test.start().lines(), ["attempt_started 0/0 1.1 as 2"]);
}

#[test]
fn a_list_asks_its_breakers_too_and_waits() {
    let text = "
- shell: a
  breaker: {name: payments, failure_threshold: 1, half_open_max_calls: 1}
  retry_config: {attempts: 3}
- shell: b
";
    let mut test = TestedJob::started(text);
    test.fail(0, EXIT_1).at(1);
    assert_eq!(test.start().lines(), ["held 0/0 0.1 until +60s"]);
    assert_eq!(test.next_wake(), Some(at(60)));
    assert_eq!(test.at(60).start().succeed(0).start().succeed(0).outcome().0, "completed");
}

#[test]
fn an_outage_costs_no_more_than_threshold_width_and_probes() {
    let (width, items) = (7, 100);
    let mut test = TestedJob::over(&breaker_map(width, "", ""), items);
    let mut down = 0;
    while test.now < at(600) {
        test.start();
        match test.job.starts.running.values().next().copied() {
            Some(item) => {
                down += 1;
                test.fail(item.index, EXIT_1);
            }
            None => test.now = test.next_wake().unwrap(),
        }
    }
    let probes = down - test.attempts().min(3 + u64::from(width) - 1);
    assert!(down <= 3 + u64::from(width) - 1 + 10, "{down} attempts, {probes} probes");
    assert_eq!(test.finish().outcome(), ("completed", None, [100, 0, 0]));
}
