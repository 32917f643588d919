//! Steps with a completion rule: when they are complete, and what happens to the other items.

use undaunted_engine::effect::{Effect, wanted_by};
use undaunted_engine::event::{Event, JobEvent};
use undaunted_engine::id::{StartId, StepId};
use undaunted_engine::input::Input;
use undaunted_policy::{FailureCause, Reason};

use crate::fixture::{
    EXIT_1, TERM, TestedJob, at, completion_map, digest, event_lines, item_at, secs, with_rule,
};

impl TestedJob {
    /// What the completion rule has decided in the last action.
    fn decided(&self) -> Option<String> {
        decision(self.lines())
    }
}

fn decision(lines: Vec<String>) -> Option<String> {
    lines.into_iter().find(|line| line.starts_with("completion_reached"))
}

#[test]
fn all_reported_goes_before_the_minimum() {
    let mut test = with_rule("best_effort_min_dcs: 2", 2);
    assert_eq!(test.succeed(0).decided(), None);
    assert_eq!(
        test.succeed(1).lines()[2..],
        ["completion_reached 0: all_dcs_reported, met", "step_completed 0", "step_started 1"]
    );
}

#[test]
fn all_reported_goes_before_the_deadline() {
    let mut test = with_rule("best_effort_min_dcs: 1", 1);
    test.at(301);
    assert_eq!(test.fail(0, EXIT_1).decided().unwrap(), "completion_reached 0: all_dcs_reported, missed");
}

#[test]
fn the_minimum_goes_before_the_deadline() {
    let mut test = with_rule("best_effort_min_dcs: 1", 2);
    test.at(301);
    assert_eq!(test.succeed(0).decided().unwrap(), "completion_reached 0: min_dcs_reached (1/1), met");
}

#[test]
fn the_deadline_runs_from_the_start_of_the_step() {
    let text = completion_map("best_effort_deadline_seconds: 60\n  best_effort_min_dcs: 2")
        .replace("map:\n", "setup: [{shell: s}]\nmap:\n");
    let mut test = TestedJob::started(&text);
    test.at(100).succeed(0).at(110).items(3).start().succeed(0);
    assert_eq!(test.next_wake(), Some(at(160)), "the step began at 100s");
    assert_eq!(test.at(159).wake().lines(), [""; 0]);
    test.at(160);
    assert_eq!(test.wake().lines(), ["completion_reached 1: deadline_expired (completed: 1), missed"]);
}

#[test]
fn by_default_one_item_within_300_seconds_is_enough() {
    let test = with_rule("on_complete: cancel", 3);
    assert_eq!(test.next_wake(), Some(at(300)));
    let mut test = with_rule("best_effort_deadline_seconds: 0", 3);
    assert_eq!(test.next_wake(), Some(at(300)), "0 is the default");
    assert_eq!(test.succeed(1).decided().unwrap(), "completion_reached 0: min_dcs_reached (1/1), met");
}

#[test]
fn the_minimum_is_clamped_to_the_number_of_items() {
    let mut test = with_rule("best_effort_min_dcs: 9", 2);
    test.succeed(0);
    assert!(test.succeed(1).decided().unwrap().ends_with(", met"));
    let mut test = with_rule("best_effort_min_dcs: 0", 2);
    assert_eq!(test.succeed(0).decided().unwrap(), "completion_reached 0: min_dcs_reached (1/1), met");
}

#[test]
fn neither_suspension_nor_a_pause_moves_the_deadline() {
    let mut test = TestedJob::over(&completion_map("best_effort_deadline_seconds: 60"), 3);
    test.at(10).pause();
    assert_eq!(test.next_wake(), Some(at(60)));
    test.at(20).unpause().suspend();
    assert_eq!(test.next_wake(), None);
    test.at(50).crash_and_resume();
    assert_eq!(test.next_wake(), Some(at(60)));
    test.pause().at(60);
    assert_eq!(
        test.wake().lines()[0],
        "completion_reached 0: deadline_expired (completed: 0), missed",
        "paused or not"
    );
}

#[test]
fn a_deadline_that_passed_during_downtime_is_applied_after_the_pending_results() {
    let mut test = with_rule("best_effort_deadline_seconds: 60\n  best_effort_min_dcs: 3", 3);
    assert_eq!(test.at(1000).crash_and_resume().decided(), None);
    test.succeed(1);
    assert_eq!(
        test.wake().decided().unwrap(),
        "completion_reached 0: deadline_expired (completed: 1), missed"
    );
}

#[test]
fn results_from_downtime_count_before_the_deadline() {
    let mut test = with_rule("best_effort_deadline_seconds: 60\n  best_effort_min_dcs: 3", 3);
    test.at(1000).crash_and_resume();
    for item in 0..3 {
        test.succeed(item);
    }
    assert_eq!(test.after_reduce().outcome(), ("completed", None, [3, 0, 0]));
}

#[test]
fn with_cancel_running_items_are_ended_and_waiting_ones_are_missing() {
    let text = completion_map("best_effort_min_dcs: 1\n  max_parallel: 3")
        .replace("[{shell: a}]", "[{shell: a, retry_config: {attempts: 5}, on_failure: {shell: mend}}]");
    let mut test = TestedJob::started_over(&text, 5);
    test.fail(0, EXIT_1).start();
    let records = test.succeed(1).records();
    assert_eq!(
        event_lines(&records)[1..],
        [
            "item_succeeded 0/1",
            "completion_reached 0: min_dcs_reached (1/1), met",
            "item_skipped 0/0: cancelled"
        ]
    );
    let effects: Vec<Effect> = records.iter().filter_map(wanted_by).collect();
    assert_eq!(effects, [Effect::EndStep { step: StepId(0) }]);
    assert_eq!(test.effects().last().unwrap(), "end the attempts of 0");
    assert_eq!(test.ready(), [], "what never started stays so");
    test.crash_and_resume();
    assert_eq!(test.effects().last().unwrap(), "end the attempts of 0");
    assert_eq!(test.fail(2, TERM).lines()[1..], ["item_skipped 0/2: cancelled"], "no retry and no handler");
    assert_eq!(
        test.fail(3, EXIT_1).lines()[1..],
        ["item_skipped 0/3: cancelled", "step_completed 0", "step_started 1"]
    );
    assert_eq!(test.start().succeed(0).outcome(), ("completed", None, [1, 0, 0]));
    let names = ["a0", "a2", "a3", "a4"].map(|name| (name.to_owned(), Reason::Cancelled));
    assert_eq!(test.missing(), names);
}

#[test]
fn held_items_are_missing_too() {
    let text = completion_map("best_effort_min_dcs: 1").replace(
        "{shell: a}",
        "{shell: a, breaker: {name: payments, failure_threshold: 1}, retry_config: {attempts: 5}}",
    );
    let mut test = TestedJob::started_over(&text, 3);
    test.fail(0, EXIT_1).at(1).start();
    assert_eq!(test.held(), [0]);
    test.succeed(1);
    assert_eq!(test.held(), [0; 0]);
    let breaker = test.breaker("payments").clone();
    test.fail(2, TERM);
    assert_eq!(test.breaker("payments"), &breaker, "ended, not down");
    let missing = test.after_reduce().missing();
    assert_eq!(missing, ["a0", "a2"].map(|name| (name.to_owned(), Reason::Cancelled)));
}

#[test]
fn a_job_with_dead_letters_is_completed_if_its_rule_was_met() {
    let mut test = with_rule("best_effort_min_dcs: 2", 3);
    test.fail(0, EXIT_1).succeed(1).succeed(2);
    assert_eq!(test.after_reduce().outcome(), ("completed", None, [2, 1, 0]));
}

#[test]
fn a_job_below_its_minimum_is_partial() {
    let mut test = with_rule("best_effort_min_dcs: 2", 2);
    test.fail(0, EXIT_1);
    assert_eq!(test.succeed(1).decided().unwrap(), "completion_reached 0: all_dcs_reported, missed");
    assert_eq!(
        test.after_reduce().outcome(),
        ("partial", Some(Reason::Attempts), [1, 1, 0]),
        "what is there is returned, and reduce runs"
    );
}

#[test]
fn a_job_below_its_minimum_at_the_deadline_is_partial_and_the_report_says_so() {
    let mut test = with_rule("best_effort_min_dcs: 2", 3);
    test.succeed(0).at(300).wake().fail(1, TERM).fail(2, TERM);
    let test = test.after_reduce();
    assert_eq!(test.outcome(), ("partial", Some(Reason::Deadline), [1, 0, 0]));
    let error = test.report().error.unwrap();
    assert_eq!(error, "deadline_expired (completed: 1): 2 of 3 had to succeed");
    let names = ["a1", "a2"].map(|name| (name.to_owned(), Reason::Deadline));
    assert_eq!(test.missing(), names);
}

#[test]
fn a_failed_reduce_and_not_the_missed_minimum_fails_the_job() {
    let rule = "best_effort_min_dcs: 2\n  best_effort_deadline_seconds: 60";
    let mut test = with_rule(rule, 3);
    test.succeed(0).fail_with(1, EXIT_1, "busy").at(60).wake().fail(2, TERM).start();
    let records = test.fail_with(0, FailureCause::Exit(127), "no such program").records();
    assert_eq!(test.outcome(), ("failed", Some(Reason::Permanent), [1, 1, 0]));
    let report = test.report();
    assert_eq!(report.error.as_deref(), Some("exit status 127 (not found): no such program"));
    assert!(report.completion.is_some(), "the missed minimum is reported too");
    let Some(Event::Job(JobEvent::Failed(ended))) = records.last().map(|record| &record.event) else {
        panic!("{:?}", event_lines(&records));
    };
    let error = ended.error.as_ref().map(|it| test.job.texts.read(it));
    assert_eq!((ended.reason, error), (report.reason, report.error.as_deref()));
}

#[test]
fn redriven_dead_letters_can_reach_a_missed_minimum() {
    let mut test = with_rule("best_effort_min_dcs: 2", 2);
    test.succeed(0).fail(1, EXIT_1);
    let mut test = test.after_reduce();
    assert_eq!(test.outcome().0, "partial");
    let redrive = Input::Redrive { items: vec![item_at(1)], reduce: false, every: None };
    test.feed(&redrive).start().crash_and_resume().succeed(1);
    assert_eq!(test.outcome(), ("completed", None, [2, 0, 0]));
}

#[test]
fn a_redrive_does_not_start_missing_items_of_a_met_rule() {
    let mut test = TestedJob::started_over(&completion_map("best_effort_min_dcs: 1\n  max_parallel: 1"), 4);
    test.fail(0, EXIT_1).start().succeed(1);
    let mut test = test.after_reduce();
    assert_eq!(test.outcome(), ("completed", None, [1, 1, 0]));
    test.redrive([item_at(0)]);
    assert_eq!(test.ready(), [item_at(0)]);
    assert_eq!(test.start().fail(0, EXIT_1).outcome().0, "completed", "the rule stays met");
    assert_eq!(test.missing().len(), 2);
}

#[test]
fn a_crash_at_any_record_leads_to_the_same_decision() {
    let mut test = with_rule("best_effort_min_dcs: 2", 4);
    test.fail(0, EXIT_1).succeed(1).succeed(2).fail(3, TERM).start().succeed(0);
    assert_eq!(test.outcome(), ("completed", None, [2, 1, 0]));
    for count in test.commits.clone() {
        let mut other = test.clone();
        other.journal.truncate(count);
        other.crash_and_resume();
        let reached = |test: &TestedJob| decision(event_lines(&test.decoded()));
        if other.job.steps[0].items.is_empty() {
            other.items(4);
        }
        while !other.job.stage.has_ended() {
            other.start();
            let (&start, &item) = other.job.starts.running.iter().next().unwrap();
            let fails = [0, 3].map(item_at).contains(&item);
            let failure = fails.then_some(EXIT_1);
            other.end_start(start, failure);
        }
        assert_eq!(other.outcome(), test.outcome(), "cut after {count}");
        assert_eq!(reached(&other), reached(&test));
    }
}

#[test]
fn without_best_effort_a_step_waits_for_everything() {
    let mut test = TestedJob::started_over(&completion_map("").replace("  best_effort: true\n", ""), 2);
    assert_eq!(test.next_wake(), None);
    test.succeed(0).at(10_000);
    assert_eq!(test.wake().lines(), [""; 0]);
    test.fail(1, EXIT_1);
    let decided = decision(event_lines(&test.decoded()));
    assert_eq!(decided.unwrap(), "completion_reached 0: all_dcs_reported, missed");
    assert_eq!(test.after_reduce().outcome(), ("partial", Some(Reason::Attempts), [1, 1, 0]));
}

#[test]
fn a_map_without_items_is_completed() {
    let test = with_rule("best_effort_min_dcs: 3", 0);
    assert_eq!(test.after_reduce().outcome(), ("completed", None, [0, 0, 0]));
}

#[test]
fn unknown_and_repeated_results_do_not_change_the_counts() {
    for late in [false, true] {
        let mut test = with_rule("best_effort_min_dcs: 2", 4);
        let first = test.start_of(0);
        test.succeed(0);
        if late {
            test.succeed(1);
        }
        test.pass(secs(1));
        let before = (digest(&test.job), test.journal.len());
        for start in [first, StartId(0), StartId(99), StartId(u64::MAX)] {
            for failure in [None, Some(EXIT_1)] {
                let records = test.end_start(start, failure).records();
                assert_eq!(records, []);
            }
        }
        assert_eq!((digest(&test.job), test.journal.len()), before);
    }
}
