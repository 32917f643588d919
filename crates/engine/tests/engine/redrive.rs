//! Dead letters tried again or given up, and jobs that are paused.

use undaunted_engine::breaker::BreakerAnswer;
use undaunted_engine::id::StepId;
use undaunted_engine::input::Input;
use undaunted_policy::{FailureCause, Reason};

use crate::scene::{Scene, secs};
use crate::spoken::said;

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

/// Two items, the second of which is a dead letter; reduce has run.
fn partial() -> Scene {
    let mut scene = Scene::over(MAP, 2);
    let _ = scene.start();
    let _ = scene.succeed_writing(0, Some("x"));
    let _ = scene.succeed_writing(1, Some("y"));
    let _ = scene.start();
    let _ = scene.succeed(0);
    let _ = scene.fail(1, FailureCause::Exit(1));
    scene.at(1);
    let _ = scene.start();
    let _ = scene.fail(1, FailureCause::Exit(1));
    let _ = scene.start();
    let _ = scene.succeed(0);
    assert_eq!(scene.came_to(), ("partial", Some(Reason::Attempts), [1, 1, 0]));
    scene
}

fn redrive(reduce: bool) -> Input {
    Input::Redrive { items: vec![StepId(0).item(1), StepId(0).item(1), StepId(0).item(0)], reduce }
}

#[test]
fn a_dead_letter_is_tried_again_from_the_command_that_failed_in_a_new_round() {
    let mut scene = partial();
    let attempts = scene.job.counts.attempts;
    assert_eq!(
        scene.hear(&redrive(false)),
        ["job_redriven", "item_redriven 0/1"],
        "once, and only what is dead"
    );
    let active = scene.job.active(StepId(0).item(1)).unwrap();
    assert_eq!((active.round, active.attempts), (2, 0));
    assert_eq!(active.progress().spent, secs(0), "a fresh delay budget");
    assert_eq!(said(&scene.start()), ["attempt_started 0/1 1.1 as 7"]);
    let _ = scene.succeed(1);
    assert_eq!(scene.came_to(), ("completed", None, [2, 0, 0]));
    assert_eq!(scene.job.counts.attempts, attempts + 1, "all rounds count");
}

#[test]
fn what_comes_after_the_map_is_done_again_only_if_asked() {
    let mut scene = partial();
    let _ = scene.hear(&redrive(true));
    let _ = scene.start();
    let _ = scene.succeed(1);
    assert_eq!(said(&scene.start()), ["attempt_started 1/0 2.1 as 8"], "reduce again");
    assert_eq!(scene.job.active(StepId(1).item(0)).unwrap().round, 2, "with another token");
    let _ = scene.succeed(0);
    assert_eq!(scene.came_to(), ("completed", None, [2, 0, 0]));
}

#[test]
fn a_dead_letter_that_fails_again_is_one_again_with_its_round_and_its_charges() {
    let mut scene = partial();
    let _ = scene.hear(&redrive(false));
    let _ = scene.start();
    let _ = scene.fail(1, FailureCause::Exit(1));
    scene.at(9);
    let _ = scene.start();
    let _ = scene.fail(1, FailureCause::Exit(1));
    assert_eq!(scene.came_to(), ("partial", Some(Reason::Attempts), [1, 1, 0]));
    let _ = scene.hear(&redrive(false));
    assert_eq!(scene.job.active(StepId(0).item(1)).unwrap().round, 3);
}

#[test]
fn a_list_goes_on_behind_the_command_that_failed() {
    let mut scene = Scene::of("[{shell: a}, {shell: b}, {shell: c}]");
    let _ = scene.start();
    let _ = scene.succeed(0);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    assert_eq!(scene.came_to().0, "failed");
    let items = vec![StepId(1).item(0)];
    let _ = scene.hear(&Input::Redrive { items, reduce: false });
    let _ = scene.start();
    let _ = scene.succeed(0);
    let _ = scene.start();
    let _ = scene.succeed(0);
    assert_eq!(scene.came_to(), ("completed", None, [3, 0, 0]));
}

#[test]
fn what_was_tolerated_before_does_not_stop_a_redrive() {
    let text = "
mode: mapreduce
map:
  input: a.json
  error_policy: {max_failures: 2}
  agent_template: [{shell: a}]
";
    let mut scene = Scene::over(text, 2);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    let _ = scene.fail(1, FailureCause::Exit(1));
    assert_eq!(scene.came_to().1, Some(Reason::Tolerance));
    let items = vec![StepId(0).item(1)];
    let _ = scene.hear(&Input::Redrive { items, reduce: false });
    let _ = scene.start();
    let _ = scene.succeed(1);
    assert_eq!(scene.came_to().2, [1, 1, 0]);
    assert_eq!(scene.came_to().0, "partial");
}

#[test]
fn a_dead_letter_that_is_dropped_counts_as_skipped_and_is_none_any_more() {
    let mut scene = partial();
    let items = vec![StepId(0).item(1), StepId(0).item(0)];
    assert_eq!(scene.hear(&Input::Drop { items }), ["item_dropped 0/1"], "only what is dead");
    assert_eq!(scene.came_to().2, [1, 0, 1]);
    assert!(scene.hear(&redrive(false)).is_empty());
}

#[test]
fn nothing_new_starts_in_a_paused_job_and_the_time_of_its_items_stands_still() {
    let text = "
mode: mapreduce
map:
  input: a.json
  agent_timeout_secs: 100
  agent_template:
    - shell: a
      retry_config: {attempts: 9, backoff: fixed, initial_delay: 1s}
";
    let mut scene = Scene::over(text, 1);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    assert_eq!(scene.hear(&Input::Pause), ["job_paused"]);
    assert!(scene.hear(&Input::Pause).is_empty(), "once");
    scene.at(1000);
    assert_eq!(scene.ready(), []);
    assert!(
        scene
            .hear(&Input::Start { item: StepId(0).item(0), refused: None, gate: BreakerAnswer::NoBreaker })
            .is_empty()
    );
    let _ = scene.hear(&Input::Unpause);
    let started = said(&scene.start());
    assert_eq!(started, ["attempt_started 0/0 0.2 as 2"], "not past its deadline");
    let said = said(&scene.fail(0, FailureCause::Exit(1)));
    assert!(said.last().unwrap().starts_with("retry_scheduled"), "{said:?}");
}

#[test]
fn a_job_that_is_suspended_while_paused_is_still_paused_when_it_is_resumed() {
    let mut scene = Scene::over(MAP, 1);
    let _ = scene.hear(&Input::Pause);
    let _ = scene.hear(&Input::Suspend);
    scene.at(50);
    let _ = scene.hear(&Input::Resume { seen: None });
    assert_eq!(scene.ready(), []);
    scene.at(60);
    let _ = scene.hear(&Input::Unpause);
    assert_eq!(scene.ready(), [StepId(0).item(0)]);
}

#[test]
fn what_comes_after_the_map_can_be_done_again_without_any_dead_letter() {
    let mut scene = partial();
    let _ = scene.hear(&redrive(false));
    let _ = scene.start();
    let _ = scene.succeed(1);
    assert_eq!(scene.came_to().0, "completed");
    let items = Vec::new();
    let reduce = true;
    let _ = scene.hear(&Input::Redrive { items, reduce });
    let _ = scene.start();
    let _ = scene.succeed(0);
    assert_eq!(scene.came_to(), ("completed", None, [2, 0, 0]));
}

#[test]
fn a_dead_letter_of_what_comes_after_the_map_is_gone_when_that_is_done_again() {
    let mut scene = Scene::over(MAP, 1);
    for _ in 0..2 {
        let _ = scene.start();
        let _ = scene.succeed_writing(0, Some("x"));
    }
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    assert_eq!(scene.came_to().0, "failed");
    let items = vec![StepId(1).item(0)];
    let reduce = true;
    assert_eq!(scene.hear(&Input::Redrive { items, reduce }), ["job_redriven", "step_started 1"]);
    assert!(scene.job.dead.is_empty());
    let _ = scene.start();
    let _ = scene.succeed(0);
    assert_eq!(scene.came_to(), ("completed", None, [1, 0, 0]));
}
