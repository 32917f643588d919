//! Cancelling, suspending and resuming.

use undaunted_engine::event::{Event, JobEvent};
use undaunted_engine::job::JobStage;
use undaunted_policy::{FailureCause, Reason};

use crate::fixture::{EXIT_1, TERM, TestedJob, input_failed, item_at, secs, start_input};

const MAP: &str = "
mode: mapreduce
map:
  input: a.json
  max_parallel: 2
  agent_template:
    - {shell: a, retry_config: {attempts: 3}, on_failure: {shell: mend}}
reduce: [{shell: r}]
";

#[test]
fn a_cancel_skips_what_waits_and_ends_what_runs() {
    let mut test = TestedJob::started_over(MAP, 4);
    test.fail(0, EXIT_1).start();
    assert_eq!(test.cancel().lines(), ["job_stopping cancelled", "item_skipped 0/0: cancelled"]);
    assert_eq!(test.effects(), ["begin 2 for 0/1", "begin 3 for 0/2", "end all"]);
    assert_eq!(test.ready(), []);
    assert_eq!(test.cancel().lines(), [""; 0], "once is enough");
    // No handler runs, whatever the failure.
    assert_eq!(test.fail(1, FailureCause::Exit(127)).lines()[1..], ["item_skipped 0/1: cancelled"]);
    assert_eq!(
        test.fail(2, TERM).lines()[1..],
        ["item_skipped 0/2: cancelled", "step_failed 0", "job_cancelled cancelled"]
    );
    assert_eq!(test.outcome(), ("cancelled", Some(Reason::Cancelled), [0, 0, 3]));
    assert_eq!(test.report().missing[0].reason, Reason::Cancelled);
}

#[test]
fn an_item_that_succeeds_after_a_cancel_has_succeeded() {
    let mut test = TestedJob::started_over(MAP, 1);
    assert_eq!(test.cancel().succeed(0).outcome(), ("cancelled", Some(Reason::Cancelled), [1, 0, 0]));
}

#[test]
fn a_handler_that_succeeds_after_a_cancel_does_not_save_the_item() {
    let mut test = TestedJob::started_over(MAP, 1);
    test.fail(0, FailureCause::Exit(127)).start().cancel();
    assert_eq!(test.succeed(0).lines()[1], "item_skipped 0/0: cancelled");
}

#[test]
fn a_suspended_job_can_be_cancelled() {
    let mut test = TestedJob::over(MAP, 2);
    test.suspend();
    assert_eq!(test.cancel().lines(), ["job_stopping cancelled", "step_failed 0", "job_cancelled cancelled"]);
}

#[test]
fn a_cancel_waits_for_the_command_that_lists_the_items() {
    let text = "
mode: mapreduce
map: {input: {shell: ls}, agent_template: [{shell: a}]}
";
    let mut test = TestedJob::of(text);
    assert_eq!(test.effects(), ["read the items of 0 by 1"]);
    assert_eq!(test.cancel().lines(), ["job_stopping cancelled"]);
    assert_eq!(test.effects(), ["read the items of 0 by 1", "end all"]);
    let failed = input_failed(Reason::Cancelled, "ended by signal 15 (TERM)");
    assert_eq!(test.feed(&failed).lines().last().unwrap(), "job_cancelled cancelled");
}

#[test]
fn a_job_is_suspended_only_when_nothing_runs() {
    let mut test = TestedJob::started_over(MAP, 1);
    assert_eq!(test.suspend().lines(), [""; 0]);
    test.fail(0, EXIT_1);
    assert_eq!(test.suspend().lines(), ["job_suspended"]);
    assert_eq!((test.ready(), test.next_wake()), (vec![], None));
    let start = start_input(item_at(0));
    assert_eq!(test.at(100).feed(&start).lines(), [""; 0]);
    assert_eq!(test.suspend().lines(), [""; 0]);
}

#[test]
fn a_job_is_not_suspended_while_a_command_lists_its_items() {
    let text = "
mode: mapreduce
map: {input: {shell: ls}, agent_template: [{shell: a}]}
";
    let mut test = TestedJob::of(text);
    assert_eq!(test.suspend().lines(), [""; 0]);
    test.items(1);
    assert_eq!(test.suspend().lines(), ["job_suspended"]);
}

#[test]
fn a_resume_records_the_run_the_downtime_and_the_restored_work() {
    let mut test = TestedJob::started_over(MAP, 5);
    test.succeed(0).start().fail(1, EXIT_1).pass(secs(90));
    let records = test.crash_and_resume().records();
    let Event::Job(JobEvent::Resumed(resumed)) = &records[0].event else {
        panic!("{records:?}");
    };
    assert_eq!((resumed.run, resumed.away), (2, secs(90)));
    assert!(!resumed.planned);
    let found = resumed.work;
    assert_eq!((found.running, found.waiting), (1, 1));
    assert_eq!((found.settled, found.pending), (1, 2));
    assert_eq!(found.attempts, 3);
    test.crash_and_resume();
    assert_eq!(test.job.run, 3);
}

#[test]
fn a_stopping_job_still_stops_after_a_crash() {
    let mut test = TestedJob::started_over(MAP, 3);
    test.cancel();
    assert_eq!(test.crash_and_resume().lines(), ["job_resumed run 2"]);
    assert_eq!(test.job.stage, JobStage::Stopping(Reason::Cancelled));
    assert_eq!(test.effects().last().unwrap(), "end all");
    assert_eq!(test.ready(), []);
}
