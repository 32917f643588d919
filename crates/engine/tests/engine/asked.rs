//! What somebody asks for while nobody runs a job is no sign of life.

use undaunted_engine::input::Input;
use undaunted_policy::{FailureCause, Reason};

use crate::scene::{Scene, at};
use crate::spoken::said;

/// One item that has so many seconds and waits for its retry.
fn waiting(settings: &str, limit: u64) -> Scene {
    let text = format!(
        "
retry_budget: 5
mode: mapreduce
map:
  input: a.json
  timeout_config: {{agent_timeout_secs: {limit}}}
  agent_template:
    - {{shell: a, retry_config: {{attempts: 4, backoff: fixed, initial_delay: 2s{settings}}}}}
"
    );
    let mut scene = Scene::over(&text, 1);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    scene.at(1);
    scene
}

fn asked() -> [Vec<(u64, Input)>; 4] {
    [
        vec![],
        vec![(5, Input::TopUp { retries: 1 })],
        vec![(3, Input::Pause), (6, Input::Unpause)],
        vec![(2, Input::Pause), (3, Input::Unpause), (4, Input::TopUp { retries: 1 })],
    ]
}

#[test]
fn the_time_of_a_suspended_job_stands_still_whatever_is_asked_of_it() {
    for asked in asked() {
        let mut scene = waiting("", 6);
        let _ = scene.tell(&Input::Suspend);
        for (when, input) in &asked {
            let _ = scene.at(*when).tell(input);
        }
        let _ = scene.at(8).crash_and_resume();
        assert_eq!(scene.active(0).began(), Some(at(7)), "{asked:?}");
    }
}

#[test]
fn a_pause_that_begins_before_or_in_a_suspension_counts_once() {
    for paused in [0, 1] {
        let mut scene = waiting("", 600);
        if paused == 0 {
            let _ = scene.tell(&Input::Pause);
        }
        let _ = scene.at(11).tell(&Input::Suspend);
        if paused == 1 {
            let _ = scene.at(15).tell(&Input::Pause);
        }
        let _ = scene.at(31).crash_and_resume();
        let _ = scene.at(41).tell(&Input::Unpause);
        // From 11 to 31 it was suspended, and paused up to 41; the first pause began at 1.
        let expected = if paused == 0 { 40 } else { 30 };
        assert_eq!(scene.active(0).began(), Some(at(expected)));
    }
}

#[test]
fn downtime_is_waiting_whatever_was_asked_meanwhile() {
    for asked in asked() {
        let mut scene = waiting(", retry_budget: 3s", 600);
        for (when, input) in &asked {
            let _ = scene.at(*when).tell(input);
        }
        let said = said(&scene.at(9).crash_and_resume());
        assert!(said.iter().any(|it| it.ends_with("retry_budget_expired")), "{asked:?}: {said:?}");
        assert_eq!(scene.came_to().1, Some(Reason::RetryBudgetExpired));
    }
}
