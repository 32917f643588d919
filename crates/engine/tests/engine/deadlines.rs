//! Deadlines of items and of the job.

use std::time::Duration;

use undaunted_engine::id::StepId;
use undaunted_engine::input::Input;
use undaunted_engine::task::{ValueFiles, task};
use undaunted_policy::{FailureCause, Reason};

use crate::scene::{Scene, at, secs};
use crate::spoken::said;

/// One item with ten seconds, retried every four.
const ITEM: &str = "
mode: mapreduce
map:
  input: a.json
  timeout_config:
    agent_timeout_secs: 10
    retry_config: {attempts: 9, backoff: fixed, initial_delay: 4s}
  agent_template: [{shell: a}]
";

fn timeout(scene: &Scene) -> Option<Duration> {
    let made = task(&scene.job, StepId(0).item(0), ValueFiles::default(), scene.now);
    made.unwrap().unwrap().timeout
}

#[test]
fn delays_count_towards_the_deadline_of_an_item_and_a_retry_due_after_it_is_refused() {
    let mut scene = Scene::over(ITEM, 1);
    scene.at(100);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    scene.at(104);
    let _ = scene.start();
    scene.at(106);
    // Due exactly at the deadline: allowed.
    assert_eq!(said(&scene.fail(0, FailureCause::Exit(1)))[1], "retry_scheduled 0/0 0.2 in 4s at +110s");
    scene.at(110);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    assert_eq!(scene.came_to(), ("partial", Some(Reason::Deadline), [0, 1, 0]));
}

#[test]
fn an_attempt_has_no_more_time_than_its_item() {
    let mut scene = Scene::over(ITEM, 1);
    scene.at(100);
    assert_eq!(timeout(&scene), Some(secs(10)), "a first attempt");
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    scene.at(107);
    assert_eq!(timeout(&scene), Some(secs(3)));
}

#[test]
fn downtime_counts_towards_the_deadline_of_an_item() {
    let mut scene = Scene::over(ITEM, 1);
    let _ = scene.start();
    let _ = scene.fail_saying(0, FailureCause::Exit(1), "busy");
    scene.at(11);
    let _ = scene.crash_and_resume();
    let said = said(&scene.start());
    assert_eq!(said[1..3], ["command_stopped 0/0 0.1: deadline", "item_dead_lettered 0/0 0.1: deadline"]);
    let error = scene.report().error.unwrap();
    assert!(error.ends_with("; last error: exit status 1: busy"), "{error}");
}

#[test]
fn clean_suspension_does_not_count_towards_the_deadline_of_an_item() {
    let mut scene = Scene::over(ITEM, 1);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    scene.at(2);
    let _ = scene.tell(&Input::Suspend);
    scene.at(1000);
    let _ = scene.crash_and_resume();
    assert_eq!(scene.active(0).began(), Some(at(998)));
    assert_eq!(timeout(&scene), Some(secs(8)));
    let _ = scene.start();
    scene.at(1001);
    assert_eq!(said(&scene.fail(0, FailureCause::Exit(1)))[1], "retry_scheduled 0/0 0.2 in 4s at +1005s");
}

#[test]
fn the_job_deadline_stops_everything_and_nothing_moves_it() {
    let text = "
deadline: 60s
mode: mapreduce
map:
  input: a.json
  max_parallel: 2
  error_policy: {retry_config: {attempts: 9}}
  agent_template: [{shell: a}]
reduce: [{shell: r}]
";
    let mut scene = Scene::over(text, 4);
    assert_eq!(scene.next_wake(), Some(at(60)));
    let _ = scene.start();
    scene.at(58);
    let _ = scene.fail(0, FailureCause::Exit(1));
    let _ = scene.start();
    scene.at(59);
    // Due at 60s: not after the deadline. The other at 61s would be.
    let _ = scene.tell(&Input::Woke);
    assert_eq!(scene.job.starts.running.len(), 2);
    scene.at(60);
    assert_eq!(scene.hear(&Input::Woke), ["job_stopping deadline", "item_skipped 0/0: deadline"]);
    assert_eq!(scene.wanted().last().unwrap(), "end all");
    assert_eq!(scene.next_wake(), None);
    let _ = scene.fail(1, FailureCause::Signal(15));
    let said = said(&scene.fail(2, FailureCause::Signal(15)));
    assert_eq!(said[1..], ["item_skipped 0/2: deadline", "step_failed 0", "job_failed deadline"]);
    assert_eq!(scene.came_to(), ("failed", Some(Reason::Deadline), [0, 0, 3]));
    assert_eq!(scene.report().missing.len(), 1);
}

#[test]
fn a_retry_due_after_the_job_deadline_is_refused() {
    let text = "deadline: 10s\nretry_config: {attempts: 9, initial_delay: 11s}\ncommands: [{shell: a}]\n";
    let mut scene = Scene::of(text);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    assert_eq!(scene.came_to(), ("failed", Some(Reason::Deadline), [0, 1, 0]));
}

#[test]
fn suspension_does_not_move_the_job_deadline() {
    let mut scene = Scene::of("deadline: 60s\ncommands: [{shell: a}]\n");
    let _ = scene.tell(&Input::Suspend);
    assert_eq!(scene.next_wake(), None, "nothing wakes a suspended job");
    scene.at(100);
    let _ = scene.crash_and_resume();
    // Even if nobody says that the time is up, nothing is started any more.
    assert_eq!(said(&scene.start()), ["job_stopping deadline", "step_failed 0", "job_failed deadline"]);
}

#[test]
fn a_handler_may_clean_up_after_an_item_whose_time_has_run_out() {
    let text = ITEM.replace("[{shell: a}]", "[{shell: a, on_failure: {shell: mend, max_attempts: 3}}]");
    let mut scene = Scene::over(&text, 1);
    let _ = scene.start();
    scene.at(10);
    let stopped = said(&scene.fail(0, FailureCause::Timeout));
    assert_eq!(stopped.last().unwrap(), "command_stopped 0/0 0.1: deadline, handler 1");
    scene.at(12);
    assert_eq!(timeout(&scene), None);
    let _ = scene.start();
    // But there is no time for one attempt more, so nothing was saved.
    assert_eq!(said(&scene.succeed(0))[1], "item_dead_lettered 0/0 0.1: deadline");
}

#[test]
fn an_attempt_more_whose_time_ran_out_in_the_queue_runs_no_handler_again() {
    let text = ITEM.replace(
        "[{shell: a}]",
        "[{shell: a, retry_config: {attempts: 0}, on_failure: {shell: mend, max_attempts: 3}}]",
    );
    let mut scene = Scene::over(&text, 1);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    let _ = scene.start();
    scene.at(9);
    let _ = scene.succeed(0);
    scene.at(11);
    assert_eq!(said(&scene.start())[0], "item_dead_lettered 0/0 0.1: attempts");
}

#[test]
fn a_handler_that_is_the_first_start_of_its_item_has_not_the_time_of_the_item() {
    let text = "
mode: mapreduce
deadline: 1h
map:
  input: a.json
  max_parallel: 1
  timeout_config: {agent_timeout_secs: 8}
  agent_template:
    - shell: a
      breaker: {name: payments, failure_threshold: 1, max_hold: 20s}
      on_failure: {shell: mend}
";
    let mut scene = Scene::over(text, 2);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    let _ = scene.start();
    let _ = scene.succeed(0);
    let _ = scene.start();
    assert_eq!(scene.held(), [1]);
    scene.at(20);
    assert_eq!(scene.hear(&Input::Woke).last().unwrap(), "command_stopped 0/1 0.0: circuit_open, handler 1");
    let made = task(&scene.job, StepId(0).item(1), ValueFiles::default(), scene.now);
    let timeout = made.unwrap().unwrap().timeout;
    assert_eq!(timeout, Some(secs(3580)), "that of the job");
}
