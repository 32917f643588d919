//! What a breaker holds: nothing is used up, time goes on, and in the end everything is let go.

use undaunted_engine::event::{Event, JobEvent};
use undaunted_engine::id::StepId;
use undaunted_engine::input::Input;
use undaunted_policy::{FailureCause, Reason};

use crate::breakers::{NAME, finish, map, open, opened, started};
use crate::retries::scheduled;
use crate::scene::{Scene, at, digest, secs};
use crate::spoken::said;

#[test]
fn a_hold_uses_no_attempt_no_delay_budget_and_no_pool() {
    let text = format!("retry_budget: 9\n{}", map(3, "", ", retry_budget: 5s, initial_delay: 2s"));
    let mut scene = opened(&text, 3);
    scene.at(2);
    let before = (scene.counted(), scene.job.pool, scene.active(0).progress());
    let _ = scene.start();
    assert_eq!(scene.held(), [0, 1, 2]);
    let after = (scene.counted(), scene.job.pool, scene.active(0).progress());
    assert_eq!(after, before);
    scene.at(60);
    assert_eq!(started(&scene.start()), [0]);
    let retrying = scheduled(&scene.fail(0, FailureCause::Exit(1))).unwrap();
    assert_eq!(retrying.sum.spent_before, secs(2), "58s held are not spent");
    assert_eq!(retrying.sum.retry, 2);
}

#[test]
fn downtime_while_it_is_held_is_not_charged_to_the_delay_budget() {
    let mut scene = opened(&map(3, "", ", retry_budget: 5s"), 3);
    scene.at(1);
    let _ = scene.start();
    scene.at(1000);
    assert_eq!(said(&scene.crash_and_resume()), ["job_resumed run 2"]);
    assert_eq!(scene.held(), [0, 1, 2]);
    finish(&mut scene);
    assert_eq!(scene.came_to(), ("completed", None, [3, 0, 0]));
}

#[test]
fn a_hold_gives_its_slot_back() {
    // The second command asks no breaker; what is held must not keep it from running.
    let text = format!("{}    - shell: b\n", map(3, "", ""));
    let mut scene = Scene::over(&text, 4);
    let _ = scene.start();
    let _ = scene.succeed(0);
    for item in 1..3 {
        let _ = scene.fail(item, FailureCause::Exit(1));
    }
    scene.at(1);
    let _ = scene.start();
    let _ = scene.fail(1, FailureCause::Exit(1));
    assert_eq!(scene.breaker(NAME).word(), "open");
    let _ = scene.fail(2, FailureCause::Exit(1));
    scene.at(2);
    let _ = scene.start();
    let _ = scene.start();
    let step = &scene.job.steps[0];
    assert_eq!(step.running, 1, "of the second command");
    assert_eq!(scene.held(), [1, 2, 3]);
}

#[test]
fn with_when_open_fail_a_start_stops_with_circuit_open_and_uses_no_attempt() {
    let mut scene = opened(&map(3, ", when_open: fail", ""), 4);
    assert_eq!(
        said(&scene.start()),
        [
            "text_kept `The circuit breaker is open (`payments`)`",
            "command_stopped 0/3 0.0: circuit_open",
            "item_dead_lettered 0/3 0.0: circuit_open"
        ]
    );
    assert_eq!(scene.counted().0, 3);
    scene.at(1);
    let _ = scene.start();
    let (status, reason, items) = scene.came_to();
    assert_eq!((status, reason, items), ("partial", Some(Reason::CircuitOpen), [0, 4, 0]));
    assert_eq!(scene.counted().0, 3, "no attempt was used");
}

#[test]
fn with_when_open_fail_the_handler_runs() {
    let text = format!("{}      on_failure: {{shell: mend}}\n", map(3, ", when_open: fail", ""));
    let mut scene = opened(&text, 3);
    scene.at(1);
    let said_first = said(&scene.start());
    assert_eq!(said_first[1], "command_stopped 0/0 0.1: circuit_open, handler 1");
    finish(&mut scene);
    assert_eq!(scene.came_to(), ("completed", None, [3, 0, 0]));
    let error = scene.report().error.unwrap();
    assert!(error.ends_with("; last error: exit status 1"), "it stays in the report: {error}");
}

#[test]
fn with_when_open_fail_a_probe_is_made_when_the_time_has_passed() {
    let mut scene = opened(&map(3, ", when_open: fail", ", initial_delay: 40s").replace("60s", "30s"), 3);
    scene.at(40);
    let said_first = said(&scene.start());
    assert_eq!(said_first[0], "attempt_started 0/0 0.2 as 4, a probe");
    assert!(
        said_first.contains(&"item_dead_lettered 0/1 0.1: circuit_open".to_owned()),
        "another one is refused meanwhile: {said_first:?}"
    );
}

#[test]
fn what_is_held_longer_than_max_hold_stops_with_circuit_open() {
    let mut scene = opened(&map(3, ", max_hold: 20s", ""), 4);
    let _ = scene.start();
    scene.at(1);
    let _ = scene.start();
    assert_eq!(scene.next_wake(), Some(at(20)), "of the one held first");
    scene.at(19);
    assert_eq!(scene.hear(&Input::Woke), [""; 0]);
    scene.at(20);
    assert_eq!(
        scene.hear(&Input::Woke)[1..],
        ["command_stopped 0/3 0.0: circuit_open", "item_dead_lettered 0/3 0.0: circuit_open"]
    );
    assert_eq!(scene.next_wake(), Some(at(21)));
    scene.at(21);
    let _ = scene.hear(&Input::Woke);
    assert_eq!(scene.came_to(), ("partial", Some(Reason::CircuitOpen), [0, 4, 0]));
    assert_eq!(scene.counted().0, 3);
}

#[test]
fn what_is_held_longer_than_max_hold_runs_its_handler() {
    let text = format!("{}      on_failure: {{shell: mend}}\n", map(3, ", max_hold: 20s", ""));
    let mut scene = opened(&text, 3);
    scene.at(1);
    let _ = scene.start();
    scene.at(21);
    let said = scene.hear(&Input::Woke);
    assert_eq!(said[1], "command_stopped 0/0 0.1: circuit_open, handler 1");
    finish(&mut scene);
    assert_eq!(scene.came_to().2, [3, 0, 0]);
}

/// An item has so many seconds.
fn limited(seconds: u64, text: &str) -> String {
    let limit = format!("  timeout_config: {{agent_timeout_secs: {seconds}}}\n  agent_template:");
    text.replace("  agent_template:", &limit)
}

#[test]
fn held_time_counts_to_the_deadline_of_an_item_from_its_first_start() {
    let mut scene = Scene::over(&limited(30, &map(3, "", "")), 4);
    scene.at(100);
    let _ = scene.start();
    for item in 0..3 {
        let _ = scene.fail(item, FailureCause::Exit(1));
    }
    let _ = scene.start();
    scene.at(101);
    let _ = scene.start();
    assert_eq!(scene.held(), [0, 1, 2, 3]);
    assert_eq!(scene.next_wake(), Some(at(130)));
    scene.at(130);
    let said = scene.hear(&Input::Woke);
    assert_eq!(said[1], "command_stopped 0/0 0.1: deadline");
    assert_eq!(scene.held(), [3], "it has not started, so it has its time");
    let error = scene.report().error.unwrap();
    assert!(error.contains("the breaker `payments` was open"), "{error}");
    finish(&mut scene);
    assert_eq!(scene.came_to(), ("partial", Some(Reason::Deadline), [1, 3, 0]));
}

#[test]
fn held_time_counts_to_the_deadline_of_the_job() {
    let text = format!("deadline: 40s\n{}", map(3, "", ""));
    let mut scene = opened(&text, 5);
    let _ = scene.start();
    scene.at(1);
    let _ = scene.start();
    assert_eq!(scene.next_wake(), Some(at(40)));
    scene.at(40);
    let said = scene.hear(&Input::Woke);
    assert_eq!(said[0], "job_stopping deadline");
    assert!(said.contains(&"item_skipped 0/4: deadline".to_owned()), "{said:?}");
    assert_eq!(scene.came_to(), ("failed", Some(Reason::Deadline), [0, 0, 5]));
}

#[test]
fn clean_suspension_does_not_count_to_a_hold_and_downtime_does() {
    let mut scene = opened(&limited(50, &map(3, ", max_hold: 20s", "")), 3);
    scene.at(1);
    let _ = scene.start();
    scene.at(11);
    let _ = scene.tell(&Input::Suspend);
    assert_eq!(scene.next_wake(), None);
    scene.at(1011);
    let _ = scene.crash_and_resume();
    assert_eq!(scene.held(), [0, 1, 2]);
    assert_eq!(scene.job.steps[0].held.next_expiry(), Some(at(1021)));
    scene.at(1012);
    let _ = scene.crash_and_resume();
    assert_eq!(scene.job.steps[0].held.next_expiry(), Some(at(1021)), "nobody was there, and time went on");
}

#[test]
fn a_pause_does_not_count_to_a_hold() {
    let mut scene = opened(&map(3, ", max_hold: 20s", ""), 3);
    scene.at(1);
    let _ = scene.start();
    scene.at(11);
    let _ = scene.tell(&Input::Pause);
    assert_eq!(scene.next_wake(), None);
    scene.at(500);
    assert_eq!(scene.hear(&Input::Woke), [""; 0]);
    assert_eq!(scene.ready(), [], "nor does one probe");
    scene.at(511);
    let _ = scene.tell(&Input::Unpause);
    assert_eq!(scene.held(), [0, 1, 2]);
    assert_eq!(scene.job.steps[0].held.next_expiry(), Some(at(521)));
    let _ = scene.crash_and_resume();
    assert_eq!(scene.job.steps[0].held.next_expiry(), Some(at(521)));
}

#[test]
fn a_deadline_that_a_pause_has_moved_is_the_one_of_the_hold() {
    let mut scene = opened(&limited(30, &map(3, "", "")), 3);
    scene.at(1);
    let _ = scene.start();
    scene.at(11);
    let _ = scene.tell(&Input::Pause);
    scene.at(111);
    let _ = scene.tell(&Input::Unpause);
    assert_eq!(scene.job.steps[0].held.next_expiry(), Some(at(130)));
    scene.at(130);
    let said = scene.hear(&Input::Woke);
    assert_eq!(said[1], "command_stopped 0/0 0.1: deadline");
}

/// A command whose exit status 3 says that its target is down.
fn rule() -> String {
    format!("retry_budget: 9\n{}", map(3, "", ", rules: [{exit_code: 3, then: hold}]"))
}

#[test]
fn a_rule_that_holds_trips_the_breaker_and_uses_an_attempt_and_a_unit_of_the_pool() {
    let mut scene = Scene::over(&rule(), 3);
    let _ = scene.start();
    assert_eq!(
        said(&scene.fail(0, FailureCause::Exit(3))),
        ["attempt_failed 0/0 0.1 Exit(3)", "held 0/0 0.1 until +60s"]
    );
    assert_eq!(scene.turned(), ["tripped until +60s"]);
    let active = scene.active(0);
    assert_eq!((active.attempts, active.progress().retries), (1, 1));
    assert_eq!(active.progress().spent, secs(0), "no delay");
    assert_eq!((active.charged, scene.job.pool.unwrap().consumed), (1, 1));
    assert_eq!(scene.counted(), (3, 0, secs(0)));
    scene.at(60);
    let _ = scene.succeed(1);
    let _ = scene.succeed(2);
    assert_eq!(
        said(&scene.start())[..2],
        ["released 0/0 0.1 after 60s", "attempt_started 0/0 0.2 as 4, a probe"]
    );
    assert_eq!(scene.job.pool.unwrap().consumed, 1, "charged once");
}

#[test]
fn a_rule_that_holds_counts_to_the_bound_of_attempts() {
    let text = rule().replace("attempts: 9", "attempts: 1");
    let mut scene = Scene::over(&text, 1);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(3));
    scene.at(60);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(3));
    assert_eq!(scene.came_to(), ("partial", Some(Reason::Attempts), [0, 1, 0]));
    assert_eq!(scene.breaker(NAME).until(), Some(at(120)), "it tripped");
}

#[test]
fn a_rule_that_holds_is_refused_when_the_pool_is_used_up() {
    let text = rule().replace("retry_budget: 9", "retry_budget: 1");
    let mut scene = Scene::over(&text, 2);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(3));
    assert_eq!(
        said(&scene.fail(1, FailureCause::Exit(3))).last().unwrap(),
        "item_dead_lettered 0/1 0.1: job_budget_exhausted"
    );
}

#[test]
fn a_start_from_before_the_opening_is_held_by_its_rule_and_does_not_trip_again() {
    let mut scene = Scene::over(&rule(), 3);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(3));
    let open = scene.breaker(NAME).clone();
    scene.at(30);
    assert_eq!(
        said(&scene.fail(1, FailureCause::Exit(3)))[1..],
        ["held 0/1 0.1 until +90s"],
        "the job does not know that it came too late to trip the breaker"
    );
    assert_eq!(scene.breaker(NAME), &open, "it looks again when it said");
    scene.at(60);
    for item in [0, 1] {
        assert_eq!(started(&scene.start()), [item]);
        let _ = scene.succeed(item);
    }
    // A third one from then comes back when the breaker is about to close.
    let half_open = scene.breaker(NAME).clone();
    let _ = scene.fail(2, FailureCause::Exit(3));
    assert_eq!(scene.breaker(NAME), &half_open);
    assert_eq!(started(&scene.start()), [2]);
    let _ = scene.succeed(2);
    assert_eq!(scene.came_to(), ("completed", None, [3, 0, 0]));
}

#[test]
fn what_its_rule_holds_after_the_breaker_has_closed_goes_on_at_once() {
    let text = rule().replace("recovery_timeout", "half_open_max_calls: 1, recovery_timeout");
    let mut scene = Scene::over(&text, 2);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(3));
    scene.at(60);
    let _ = scene.start();
    let _ = scene.succeed(0);
    assert_eq!(scene.breaker(NAME).word(), "closed");
    let _ = scene.fail(1, FailureCause::Exit(3));
    assert_eq!(scene.breaker(NAME).word(), "closed", "it is stale");
    assert_eq!(scene.held(), [1]);
    assert_eq!(started(&scene.start()), [1]);
    let _ = scene.succeed(1);
    assert_eq!(scene.came_to(), ("completed", None, [2, 0, 0]));
}

#[test]
fn a_release_is_spread_and_everything_goes_in_the_end() {
    let text = map(50, ", half_open_max_calls: 1", "");
    let mut scene = opened(&text, 50);
    for item in 3..50 {
        let _ = scene.fail(item, FailureCause::Exit(1));
    }
    scene.at(1);
    let _ = scene.start();
    assert_eq!(scene.held().len(), 50);
    scene.at(60);
    assert_eq!(started(&scene.start()), [0]);
    let _ = scene.succeed(0);
    assert_eq!(scene.breaker(NAME).word(), "closed");
    let mut times = Vec::new();
    while !scene.held().is_empty() {
        for item in started(&scene.start()) {
            times.push(scene.now);
            let _ = scene.succeed(item);
        }
        scene.now = scene.next_wake().unwrap_or(scene.now);
    }
    assert_eq!(times.len(), 49);
    let mut apart = times.clone();
    apart.dedup();
    assert!(apart.len() > 40, "one after the other: {}", apart.len());
    assert!(times.iter().all(|time| *time <= at(65)), "{times:?}");
    assert_eq!(scene.came_to(), ("completed", None, [50, 0, 0]));
}

#[test]
fn what_never_started_goes_behind_what_was_held() {
    let text = map(4, ", half_open_max_calls: 1", "");
    let mut scene = opened(&text, 20);
    let _ = scene.fail(3, FailureCause::Exit(1));
    let _ = scene.start();
    scene.at(1);
    let _ = scene.start();
    assert_eq!(scene.held(), [0, 1, 2, 3, 4, 5, 6, 7]);
    scene.at(60);
    let _ = scene.start();
    let _ = scene.succeed(4);
    assert_eq!(scene.breaker(NAME).word(), "closed");
    let mut order = Vec::new();
    while order.len() < 15 {
        let now = started(&scene.start());
        for item in &now {
            let _ = scene.succeed(*item);
        }
        order.extend(now);
        scene.now = scene.next_wake().unwrap_or(scene.now);
    }
    assert_eq!(order[..7], [5, 6, 7, 0, 1, 2, 3], "{order:?}");
}

#[test]
fn a_crash_keeps_holds_and_the_breaker() {
    let mut scene = opened(&map(3, ", max_hold: 90s", ""), 5);
    let _ = scene.start();
    scene.at(1);
    let _ = scene.start();
    let (live, breaker) = (digest(&scene.job), scene.breaker(NAME).clone());
    scene.at(30);
    let found = scene.refolded();
    assert_eq!(digest(&found), live);
    let records = scene.crash_and_resume();
    let Event::Job(JobEvent::Resumed(resumed)) = &records[0].event else {
        panic!("{records:?}");
    };
    assert_eq!(resumed.restored.held, Some(5));
    assert_eq!(scene.breaker(NAME), &breaker, "with the same instant");
    assert_eq!(scene.next_wake(), Some(at(60)));
    scene.at(60);
    assert_eq!(started(&scene.start()), [3]);
    finish(&mut scene);
    assert_eq!(scene.came_to(), ("completed", None, [5, 0, 0]));
}

#[test]
fn a_probe_that_runs_when_its_process_dies_is_still_the_probe() {
    let mut scene = open(3, 5);
    scene.at(1);
    let _ = scene.start();
    scene.at(61);
    let probe = started(&scene.start());
    scene.at(62);
    let _ = scene.crash_and_resume();
    assert_eq!(scene.ready(), [], "one at a time");
    let _ = scene.succeed(probe[0]);
    assert_eq!(started(&scene.start()).len(), 1);
}

#[test]
fn what_is_left_to_be_let_go_after_a_crash_goes_in_the_end() {
    let mut scene = opened(&map(8, ", half_open_max_calls: 1", ""), 20);
    for item in 3..8 {
        let _ = scene.fail(item, FailureCause::Exit(1));
    }
    scene.at(1);
    let _ = scene.start();
    let _ = scene.start();
    scene.at(60);
    let [probe] = started(&scene.start())[..] else {
        panic!("no probe");
    };
    let _ = scene.succeed(probe);
    assert!(!scene.held().is_empty());
    let _ = scene.crash_and_resume();
    finish(&mut scene);
    assert_eq!(scene.came_to(), ("completed", None, [20, 0, 0]));
}

#[test]
fn a_cancel_skips_what_is_held() {
    let mut scene = open(3, 5);
    let _ = scene.start();
    scene.at(1);
    let _ = scene.start();
    let said = scene.hear(&Input::Cancel);
    let skipped = said.iter().filter(|line| line.starts_with("item_skipped"));
    assert_eq!(skipped.count(), 5, "{said:?}");
    assert_eq!(scene.came_to(), ("cancelled", Some(Reason::Cancelled), [0, 0, 5]));
}

#[test]
fn a_tolerance_that_is_passed_skips_what_is_held() {
    let text = map(4, "", ", rules: [{exit_code: 3, then: dead_letter}]")
        .replace("  agent_template:", "  error_policy: {max_failures: 1}\n  agent_template:");
    let mut scene = opened(&text, 6);
    let _ = scene.start();
    scene.at(1);
    let _ = scene.start();
    assert_eq!(scene.held(), [0, 1, 2, 4, 5]);
    let said = said(&scene.fail(3, FailureCause::Exit(3)));
    assert!(said.contains(&"item_skipped 0/0: tolerance".to_owned()), "{said:?}");
    assert_eq!(scene.came_to(), ("failed", Some(Reason::Tolerance), [0, 1, 5]));
}

#[test]
fn a_dead_letter_of_an_open_breaker_is_redriven_and_asks_it_again() {
    let mut scene = opened(&map(3, ", when_open: fail", ""), 3);
    scene.at(1);
    let _ = scene.start();
    assert_eq!(scene.came_to().2, [0, 3, 0]);
    let redrive = Input::Redrive { items: vec![StepId(0).item(0), StepId(0).item(1)], reduce: false };
    scene.at(30);
    let _ = scene.tell(&redrive);
    let _ = scene.start();
    assert_eq!(scene.came_to(), ("partial", Some(Reason::CircuitOpen), [0, 3, 0]), "it is still open");
    scene.at(60);
    let _ = scene.tell(&Input::Redrive { items: vec![StepId(0).item(0)], reduce: false });
    assert_eq!(said(&scene.start())[0], "attempt_started 0/0 0.1 as 4, a probe", "a new round");
    let _ = scene.succeed(0);
    assert_eq!(scene.came_to().2, [1, 2, 0]);
}

#[test]
fn a_dead_letter_that_is_redriven_while_the_breaker_is_open_is_held() {
    let mut scene = opened(&map(3, ", max_hold: 5s", ""), 3);
    scene.at(1);
    let _ = scene.start();
    scene.at(6);
    let _ = scene.tell(&Input::Woke);
    assert_eq!(scene.came_to().2, [0, 3, 0]);
    scene.at(58);
    let _ = scene.tell(&Input::Redrive {
        items: vec![StepId(0).item(0), StepId(0).item(1), StepId(0).item(2)],
        reduce: false,
    });
    let _ = scene.start();
    assert_eq!(scene.held(), [0, 1, 2]);
    finish(&mut scene);
    assert_eq!(scene.came_to(), ("completed", None, [3, 0, 0]));
}
