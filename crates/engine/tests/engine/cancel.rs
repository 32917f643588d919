//! Cancelling, suspending and going on.

use undaunted_engine::breaker::BreakerAnswer;
use undaunted_engine::event::{Event, JobEvent};
use undaunted_engine::id::StepId;
use undaunted_engine::input::Input;
use undaunted_engine::job::JobStage;
use undaunted_policy::{FailureCause, Reason};

use crate::scene::{Scene, secs};
use crate::spoken::said;

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
    let mut scene = Scene::over(MAP, 4);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    let _ = scene.start();
    assert_eq!(scene.hear(&Input::Cancel), ["job_stopping cancelled", "item_skipped 0/0: cancelled"]);
    assert_eq!(scene.wanted(), ["begin 2 for 0/1", "begin 3 for 0/2", "end all"]);
    assert_eq!(scene.ready(), []);
    assert_eq!(scene.hear(&Input::Cancel), [""; 0], "once is enough");
    // No handler runs, whatever they end with.
    let said_first = said(&scene.fail(1, FailureCause::Exit(127)));
    assert_eq!(said_first[1..], ["item_skipped 0/1: cancelled"]);
    let said_last = said(&scene.fail(2, FailureCause::Signal(15)));
    assert_eq!(said_last[1..], ["item_skipped 0/2: cancelled", "step_failed 0", "job_cancelled cancelled"]);
    assert_eq!(scene.came_to(), ("cancelled", Some(Reason::Cancelled), [0, 0, 3]));
    assert_eq!(scene.report().missing[0].reason, Reason::Cancelled);
}

#[test]
fn an_item_that_is_done_when_it_is_cancelled_is_done() {
    let mut scene = Scene::over(MAP, 1);
    let _ = scene.start();
    let _ = scene.tell(&Input::Cancel);
    let _ = scene.succeed(0);
    assert_eq!(scene.came_to(), ("cancelled", Some(Reason::Cancelled), [1, 0, 0]));
}

#[test]
fn a_handler_that_ends_after_a_cancel_saves_nothing() {
    let mut scene = Scene::over(MAP, 1);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(127));
    let _ = scene.start();
    let _ = scene.tell(&Input::Cancel);
    let said = said(&scene.succeed(0));
    assert_eq!(said[1], "item_skipped 0/0: cancelled");
}

#[test]
fn a_suspended_job_can_be_cancelled() {
    let mut scene = Scene::over(MAP, 2);
    let _ = scene.tell(&Input::Suspend);
    assert_eq!(
        scene.hear(&Input::Cancel),
        ["job_stopping cancelled", "step_failed 0", "job_cancelled cancelled"]
    );
}

#[test]
fn a_cancel_waits_for_the_command_that_gives_the_items() {
    let text = "
mode: mapreduce
map: {input: {shell: ls}, agent_template: [{shell: a}]}
";
    let mut scene = Scene::of(text);
    assert_eq!(scene.wanted(), ["read the items of 0 by 1"]);
    assert_eq!(scene.hear(&Input::Cancel), ["job_stopping cancelled"]);
    assert_eq!(scene.wanted(), ["read the items of 0 by 1", "end all"]);
    let failed = Input::InputFailed {
        step: StepId(0),
        reason: Reason::Cancelled,
        error: "ended by signal 15 (TERM)".to_owned(),
        stderr: None,
    };
    let said = scene.hear(&failed);
    assert_eq!(said.last().unwrap(), "job_cancelled cancelled");
}

#[test]
fn a_job_is_suspended_only_when_nothing_runs() {
    let mut scene = Scene::over(MAP, 1);
    let _ = scene.start();
    assert_eq!(scene.hear(&Input::Suspend), [""; 0]);
    let _ = scene.fail(0, FailureCause::Exit(1));
    assert_eq!(scene.hear(&Input::Suspend), ["job_suspended"]);
    assert_eq!((scene.ready(), scene.next_wake()), (vec![], None));
    let start = Input::Start { item: StepId(0).item(0), refused: None, gate: BreakerAnswer::NoBreaker };
    scene.at(100);
    assert_eq!(scene.hear(&start), [""; 0]);
    assert_eq!(scene.hear(&Input::Suspend), [""; 0]);
}

#[test]
fn a_job_is_not_suspended_while_a_command_gives_its_items() {
    let text = "
mode: mapreduce
map: {input: {shell: ls}, agent_template: [{shell: a}]}
";
    let mut scene = Scene::of(text);
    assert_eq!(scene.hear(&Input::Suspend), [""; 0]);
    scene.items(1);
    assert_eq!(scene.hear(&Input::Suspend), ["job_suspended"]);
}

#[test]
fn a_resume_says_which_run_it_is_how_long_nobody_was_there_and_what_was_found() {
    let mut scene = Scene::over(MAP, 5);
    let _ = scene.start();
    let _ = scene.succeed(0);
    let _ = scene.start();
    let _ = scene.fail(1, FailureCause::Exit(1));
    scene.pass(secs(90));
    let records = scene.crash_and_resume();
    let Event::Job(JobEvent::Resumed(resumed)) = &records[0].event else {
        panic!("{records:?}");
    };
    assert_eq!((resumed.run, resumed.away), (2, secs(90)));
    assert!(!resumed.planned);
    let found = resumed.restored;
    assert_eq!((found.running, found.waiting), (1, 1));
    assert_eq!((found.settled, found.pending), (1, 2));
    assert_eq!(found.attempts, 3);
    let _ = scene.crash_and_resume();
    assert_eq!(scene.job.run, 3);
}

#[test]
fn a_job_that_stops_goes_on_stopping_after_a_crash() {
    let mut scene = Scene::over(MAP, 3);
    let _ = scene.start();
    let _ = scene.tell(&Input::Cancel);
    assert_eq!(said(&scene.crash_and_resume()), ["job_resumed run 2"]);
    assert_eq!(scene.job.stage, JobStage::Stopping(Reason::Cancelled));
    assert_eq!(scene.wanted().last().unwrap(), "end all");
    assert_eq!(scene.ready(), []);
}
