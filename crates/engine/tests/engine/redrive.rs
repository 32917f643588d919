//! Dead letters redriven or dropped, and paused jobs.

use undaunted_engine::id::StepId;
use undaunted_engine::input::Input;
use undaunted_policy::Reason;

use crate::fixture::{EXIT_1, TestedJob, at, item_at, secs, start_input};

const MAP: &str = "
mode: mapreduce
map:
  input: a.json
  agent_template:
    - shell: a
      capture_output: first
    - shell: b ${first}
      retry_config: {attempts: 1, initial_delay: 1s, retry_budget: 5s}
reduce: [{shell: r}]
";

/// Two items; the second is a dead letter, and reduce has run.
fn partial() -> TestedJob {
    let mut test = TestedJob::started_over(MAP, 2);
    test.succeed_with(0, "x").succeed_with(1, "y").start().succeed(0).fail(1, EXIT_1).at(1);
    test.start().fail(1, EXIT_1).start().succeed(0);
    assert_eq!(test.outcome(), ("partial", Some(Reason::Attempts), [1, 1, 0]));
    test
}

fn redrive(reduce: bool) -> Input {
    Input::Redrive { items: vec![item_at(1), item_at(1), item_at(0)], reduce, every: None }
}

#[test]
fn a_redriven_dead_letter_starts_at_the_failed_command_in_a_new_round() {
    let mut test = partial();
    let attempts = test.job.counts.attempts;
    assert_eq!(
        test.feed(&redrive(false)).lines(),
        ["job_redriven", "item_redriven 0/1"],
        "once, and only what is dead"
    );
    let active = test.job.active(item_at(1)).unwrap();
    assert_eq!((active.round, active.attempts), (2, 0));
    assert_eq!(active.progress().spent, secs(0), "a fresh delay budget");
    assert_eq!(test.start().lines(), ["attempt_started 0/1 1.1 as 7"]);
    assert_eq!(test.succeed(1).outcome(), ("completed", None, [2, 0, 0]));
    assert_eq!(test.job.counts.attempts, attempts + 1, "all rounds count");
}

#[test]
fn reduce_runs_again_only_if_requested() {
    let mut test = partial();
    test.feed(&redrive(true)).start().succeed(1);
    assert_eq!(test.start().lines(), ["attempt_started 1/0 2.1 as 8"], "reduce again");
    assert_eq!(test.job.active(StepId(1).item(0)).unwrap().round, 2, "with another token");
    assert_eq!(test.succeed(0).outcome(), ("completed", None, [2, 0, 0]));
}

#[test]
fn a_redriven_item_that_fails_is_a_dead_letter_again_with_its_round() {
    let mut test = partial();
    test.feed(&redrive(false)).start().fail(1, EXIT_1).at(9).start().fail(1, EXIT_1);
    assert_eq!(test.outcome(), ("partial", Some(Reason::Attempts), [1, 1, 0]));
    test.feed(&redrive(false));
    assert_eq!(test.job.active(item_at(1)).unwrap().round, 3);
}

#[test]
fn a_redriven_list_continues_after_the_failed_command() {
    let mut test = TestedJob::started("[{shell: a}, {shell: b}, {shell: c}]");
    assert_eq!(test.succeed(0).start().fail(0, EXIT_1).outcome().0, "failed");
    test.redrive([StepId(1).item(0)]).start().succeed(0).start().succeed(0);
    assert_eq!(test.outcome(), ("completed", None, [3, 0, 0]));
}

#[test]
fn failures_before_a_redrive_do_not_count_towards_the_tolerance() {
    let text = "
mode: mapreduce
map:
  input: a.json
  error_policy: {max_failures: 2}
  agent_template: [{shell: a}]
";
    let mut test = TestedJob::started_over(text, 2);
    assert_eq!(test.fail(0, EXIT_1).fail(1, EXIT_1).outcome().1, Some(Reason::Tolerance));
    assert_eq!(test.redrive([item_at(1)]).start().succeed(1).outcome().2, [1, 1, 0]);
    assert_eq!(test.outcome().0, "partial");
}

#[test]
fn a_dropped_dead_letter_counts_as_skipped() {
    let mut test = partial();
    let items = vec![item_at(1), item_at(0)];
    assert_eq!(test.drop_items(items).lines(), ["item_dropped 0/1"], "only what is dead");
    assert_eq!(test.outcome().2, [1, 0, 1]);
    assert!(test.feed(&redrive(false)).lines().is_empty());
}

#[test]
fn nothing_starts_in_a_paused_job_and_item_deadlines_move() {
    let text = "
mode: mapreduce
map:
  input: a.json
  agent_timeout_secs: 100
  agent_template:
    - shell: a
      retry_config: {attempts: 9, backoff: fixed, initial_delay: 1s}
";
    let mut test = TestedJob::started_over(text, 1);
    test.fail(0, EXIT_1);
    assert_eq!(test.pause().lines(), ["job_paused"]);
    assert!(test.pause().lines().is_empty(), "once");
    test.at(1000);
    assert_eq!(test.ready(), []);
    assert!(test.feed(&start_input(item_at(0))).lines().is_empty());
    test.unpause();
    assert_eq!(test.start().lines(), ["attempt_started 0/0 0.2 as 2"], "not past its deadline");
    let lines = test.fail(0, EXIT_1).lines();
    assert!(lines.last().unwrap().starts_with("retry_scheduled"), "{lines:?}");
}

#[test]
fn a_job_that_is_suspended_while_paused_is_still_paused_when_it_is_resumed() {
    let mut test = TestedJob::over(MAP, 1);
    test.pause().suspend().at(50).resume(None);
    assert_eq!(test.ready(), []);
    test.at(60).unpause();
    assert_eq!(test.ready(), [item_at(0)]);
}

#[test]
fn reduce_can_run_again_without_a_dead_letter() {
    let mut test = partial();
    assert_eq!(test.feed(&redrive(false)).start().succeed(1).outcome().0, "completed");
    let items = Vec::new();
    let reduce = true;
    test.feed(&Input::Redrive { items, reduce, every: None }).start().succeed(0);
    assert_eq!(test.outcome(), ("completed", None, [2, 0, 0]));
}

#[test]
fn a_dead_letter_of_reduce_is_gone_when_reduce_runs_again() {
    let mut test = TestedJob::over(MAP, 1);
    for _ in 0..2 {
        test.start().succeed_with(0, "x");
    }
    assert_eq!(test.start().fail(0, EXIT_1).outcome().0, "failed");
    let items = vec![StepId(1).item(0)];
    let reduce = true;
    assert_eq!(
        test.feed(&Input::Redrive { items, reduce, every: None }).lines(),
        ["job_redriven", "step_started 1"]
    );
    assert!(test.job.dead.is_empty());
    assert_eq!(test.start().succeed(0).outcome(), ("completed", None, [1, 0, 0]));
}

/// A list whose command is retried after ten seconds.
const BUDGET: &str = "
commands:
  - shell: a
    retry_config: {attempts: 3, backoff: fixed, initial_delay: 10s, retry_budget: 30s}
";

#[test]
fn a_pause_around_a_suspension_moves_the_end_of_a_delay_budget_once() {
    let resumed = |seconds: u64| {
        let mut test = TestedJob::started(BUDGET);
        // Due at 20 s. Of the budget 20 s are left, so the retry expires 20 s after that.
        test.at(10).fail(0, EXIT_1).at(12).pause().at(30).suspend().at(100).crash_and_resume();
        test.at(110).unpause().restart();
        test.at(seconds).resume(Some(at(110))).lines()
    };
    // The 90 s from its due time to the kill are not charged: it was paused, or the job suspended.
    assert_eq!(resumed(130), ["job_resumed run 3"]);
    assert!(resumed(131).contains(&"command_stopped 0/0 0.1: retry_budget_expired".to_owned()));
}

#[test]
fn the_pace_of_a_redrive_stays_with_the_job_until_the_next_redrive() {
    let mut test = TestedJob::started_over(&MAP.replace("reduce: [{shell: r}]\n", ""), 2);
    test.fail(0, EXIT_1).fail(1, EXIT_1);
    let items = vec![item_at(0), item_at(1)];
    let every = Some(secs(4));
    let spaced = Input::Redrive { items: items.clone(), reduce: false, every };
    assert_eq!(test.feed(&spaced).lines()[..2], ["job_redriven", "starts_spaced Some(4s)"]);
    test.at(10).start();
    test.restart();
    let pace = test.job.starts.pace.unwrap();
    assert_eq!((pace.every, pace.last), (secs(4), Some(at(10))));
    assert_eq!(pace.wait(at(11)), secs(3));
    assert_eq!(pace.wait(at(20)), secs(0));
    // The clock was set back.
    assert_eq!(pace.wait(at(5)), secs(4));
    test.fail(0, EXIT_1).fail(1, EXIT_1).redrive(items);
    assert_eq!(test.job.starts.pace, None);
}
