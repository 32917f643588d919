//! Late, repeated and unknown reports are ignored.

use undaunted_engine::decide::decide;
use undaunted_engine::id::{StartId, StepId};
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_policy::FailureCause;

use crate::fixture::{EXIT_1, TERM, TestedJob, start_input};

fn ended(start: StartId, failure: Option<FailureCause>) -> Input {
    Input::Ended(Box::new(AttemptEnd { start, failure, ..AttemptEnd::default() }))
}

#[test]
fn a_repeated_report_counts_once() {
    let mut test = TestedJob::started("- {shell: a, retry_config: {attempts: 3}}\n");
    test.fail(0, EXIT_1);
    for failure in [None, Some(EXIT_1), Some(FailureCause::Interrupted)] {
        assert_eq!(decide(&test.job, &ended(StartId(1), failure), test.now), []);
    }
    assert_eq!(test.attempts(), 1);
}

#[test]
fn a_report_about_an_earlier_attempt_does_not_end_the_one_that_runs() {
    let mut test = TestedJob::started("- {shell: a, retry_config: {attempts: 3}}\n");
    test.fail(0, EXIT_1).at(1).start();
    assert_eq!(decide(&test.job, &ended(StartId(1), None), test.now), []);
    assert_eq!(test.effects(), ["begin 2 for 0/0"]);
}

#[test]
fn a_report_about_an_unknown_start_is_ignored() {
    let test = TestedJob::started("- shell: a\n");
    for start in [0, 2, u64::MAX] {
        assert_eq!(decide(&test.job, &ended(StartId(start), None), test.now), []);
    }
}

#[test]
fn a_report_after_its_item_was_skipped_is_ignored() {
    let text = "mode: mapreduce\nmap: {input: a, agent_template: [{shell: a}]}\n";
    let mut test = TestedJob::started_over(text, 2);
    test.cancel().fail(0, TERM);
    assert_eq!(decide(&test.job, &ended(StartId(1), None), test.now), []);
}

#[test]
fn inputs_for_an_unknown_step_are_ignored() {
    let test = TestedJob::of("- shell: a\n");
    for step in [StepId(1), StepId(u32::MAX)] {
        let start = start_input(step.item(0));
        let read = Input::ItemsRead { step, items: Vec::new(), warning: None };
        assert_eq!(decide(&test.job, &start, test.now), []);
        assert_eq!(decide(&test.job, &read, test.now), []);
    }
}
