//! Breakers in a job: what opens one, what it lets through, and who finds out whether its target is
//! back.

use undaunted_engine::event::{Event, ItemEvent, Record};
use undaunted_policy::{CircuitState, FailureCause, FailureClass};

use crate::scene::{Scene, at, secs};
use crate::spoken::said;

pub(crate) const NAME: &str = "payments";

/// A map over one command that asks a breaker which opens after three failures for a minute.
pub(crate) fn map(width: u32, breaker: &str, command: &str) -> String {
    format!(
        "
mode: mapreduce
map:
  input: a.json
  max_parallel: {width}
  agent_template:
    - shell: a
      breaker: {{name: payments, failure_threshold: 3, recovery_timeout: 60s{breaker}}}
      retry_config: {{attempts: 9, backoff: fixed{command}}}
"
    )
}

/// So many items at a time, the breaker opened at once by the first three.
pub(crate) fn open(width: u32, items: u32) -> Scene {
    opened(&map(width, "", ""), items)
}

pub(crate) fn opened(text: &str, items: u32) -> Scene {
    let mut scene = Scene::over(text, items);
    let _ = scene.start();
    for item in 0..3 {
        let _ = scene.fail(item, FailureCause::Exit(1));
    }
    assert_eq!(scene.breaker(NAME).word(), "open");
    scene
}

/// The items whose attempts started.
pub(crate) fn started(records: &[Record]) -> Vec<u32> {
    let records = records.iter();
    let started = records.filter_map(|record| match &record.event {
        Event::Item(ItemEvent::AttemptStarted(started)) => Some(started.of.index),
        _ => None,
    });
    started.collect()
}

/// The only probe that starts now succeeds.
fn probe_well(scene: &mut Scene) -> u32 {
    let [item] = started(&scene.start())[..] else {
        panic!("one probe at a time");
    };
    let _ = scene.succeed(item);
    item
}

#[test]
fn a_breaker_opens_after_so_many_failures_in_a_row() {
    let mut scene = Scene::over(&map(3, "", ""), 3);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    let _ = scene.fail(1, FailureCause::Timeout);
    assert_eq!(scene.breaker(NAME).failures(), 2);
    scene.at(1);
    assert_eq!(said(&scene.fail(2, FailureCause::Signal(9)))[0], "attempt_failed 0/2 0.1 Signal(9)");
    assert_eq!(scene.turned(), ["opened until +61s"]);
    assert_eq!(scene.breaker(NAME).until(), Some(at(61)));
}

#[test]
fn a_success_begins_the_count_again() {
    let mut scene = Scene::over(&map(3, "", ""), 6);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    let _ = scene.fail(1, FailureCause::Exit(1));
    let _ = scene.succeed(2);
    assert_eq!(scene.breaker(NAME).failures(), 0);
    let _ = scene.start();
    let _ = scene.fail(3, FailureCause::Exit(1));
    let _ = scene.fail(4, FailureCause::Exit(1));
    assert_eq!(scene.breaker(NAME).word(), "closed");
}

#[test]
fn an_answer_below_500_begins_the_count_again_and_one_above_counts() {
    let mut scene = Scene::over(&map(4, "", ""), 4);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    let _ = scene.fail(1, FailureCause::Status(503));
    assert_eq!(scene.breaker(NAME).failures(), 2);
    let _ = scene.fail(2, FailureCause::Status(404));
    assert_eq!(scene.breaker(NAME).failures(), 0);
}

#[test]
fn permanent_and_interrupted_attempts_say_nothing_about_the_target() {
    let mut scene = Scene::over(&map(5, "", ""), 5);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    let _ = scene.fail(1, FailureCause::Exit(127));
    let _ = scene.fail(2, FailureCause::Interrupted);
    let _ = scene.fail(3, FailureCause::Other(FailureClass::Permanent));
    assert_eq!(scene.breaker(NAME).failures(), 1);
    let _ = scene.tell(&undaunted_engine::input::Input::Cancel);
    let _ = scene.fail(4, FailureCause::Signal(15));
    assert_eq!(scene.breaker(NAME).failures(), 1, "it was cancelled");
    assert_eq!(scene.came_to().0, "cancelled");
}

#[test]
fn a_failure_that_a_rule_makes_permanent_is_one_of_the_command_itself() {
    let text = map(2, "", ", rules: [{exit_code: 3, then: dead_letter}]");
    let mut scene = Scene::over(&text, 2);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    let _ = scene.fail(1, FailureCause::Exit(127));
    assert_eq!(scene.breaker(NAME).failures(), 1);
}

#[test]
fn an_open_breaker_gates_first_attempts_too() {
    let mut scene = open(3, 5);
    assert_eq!(said(&scene.start()), ["held 0/3 0.0 until +60s", "held 0/4 0.0 until +60s"]);
    scene.at(1);
    let said = said(&scene.start());
    assert_eq!(said, ["held 0/0 0.1 until +60s", "held 0/1 0.1 until +60s", "held 0/2 0.1 until +60s"]);
    assert_eq!(scene.counted().0, 3, "nothing was attempted");
    scene.at(59);
    assert_eq!(scene.ready(), []);
    assert_eq!(scene.next_wake(), Some(at(60)));
}

#[test]
fn as_many_items_that_never_started_are_held_as_could_run() {
    let mut scene = open(3, 1000);
    let _ = scene.start();
    assert_eq!(scene.held(), [3, 4, 5]);
    let _ = scene.start();
    assert_eq!(scene.held(), [3, 4, 5], "the others wait behind them");
    scene.at(1);
    let _ = scene.start();
    assert_eq!(scene.held(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(scene.ready(), []);
}

#[test]
fn results_of_starts_from_before_the_opening_are_ignored() {
    let mut scene = Scene::over(&map(6, "", ""), 6);
    let _ = scene.start();
    for item in 0..3 {
        let _ = scene.fail(item, FailureCause::Exit(1));
    }
    let open = scene.breaker(NAME).clone();
    scene.at(10);
    let _ = scene.succeed(3);
    assert_eq!(scene.breaker(NAME), &open, "a success does not close it");
    let _ = scene.fail(4, FailureCause::Exit(1));
    assert_eq!(scene.breaker(NAME), &open, "a failure does not extend it");
    scene.at(60);
    assert_eq!(started(&scene.start()), [0]);
    let probed = scene.breaker(NAME).clone();
    let _ = scene.fail(5, FailureCause::Exit(1));
    assert_eq!(scene.breaker(NAME), &probed, "it is not the probe's result");
}

#[test]
fn an_old_failure_does_not_count_after_the_breaker_has_closed() {
    let mut scene = Scene::over(&map(4, ", half_open_max_calls: 1", ""), 4);
    let _ = scene.start();
    for item in 0..3 {
        let _ = scene.fail(item, FailureCause::Exit(1));
    }
    scene.at(60);
    let _ = probe_well(&mut scene);
    assert_eq!(scene.breaker(NAME).word(), "closed");
    let _ = scene.fail(3, FailureCause::Exit(1));
    assert_eq!(scene.breaker(NAME).failures(), 0);
}

#[test]
fn probes_are_made_one_at_a_time_and_three_successes_close_the_breaker() {
    let mut scene = open(3, 9);
    let _ = scene.start();
    scene.at(1);
    let _ = scene.start();
    scene.at(61);
    assert_eq!(
        said(&scene.start()),
        ["released 0/3 0.0 after 61s", "attempt_started 0/3 0.1 as 4, a probe"],
        "one that has all its attempts left"
    );
    assert_eq!(scene.turned(), ["opened until +60s", "half_opened"]);
    assert_eq!(scene.ready(), [], "one is under way");
    let _ = scene.succeed(3);
    assert_eq!(scene.breaker(NAME).word(), "half_open");
    let second = probe_well(&mut scene);
    assert_eq!(second, 4);
    assert_eq!(scene.breaker(NAME).word(), "half_open");
    let third = started(&scene.start());
    assert_eq!(third, [5]);
    let _ = scene.succeed(5);
    assert_eq!(scene.turned(), ["closed"], "{:?}", scene.breaker(NAME));
    assert_eq!(scene.counted().0, 6, "three failures and three probes");
}

#[test]
fn a_probe_that_fails_opens_the_breaker_again() {
    let mut scene = open(3, 9);
    let _ = scene.start();
    scene.at(60);
    let _ = probe_well(&mut scene);
    scene.at(65);
    let [item] = started(&scene.start())[..] else {
        panic!("no probe");
    };
    scene.at(70);
    let _ = scene.turned();
    let _ = scene.fail(item, FailureCause::Exit(1));
    assert_eq!(scene.turned(), ["opened until +130s"]);
    scene.at(129);
    let _ = scene.start();
    assert_eq!(scene.job.starts.running.len(), 0);
    // Successes before that do not count.
    scene.at(130);
    for _ in 0..2 {
        let _ = probe_well(&mut scene);
        assert_eq!(scene.breaker(NAME).word(), "half_open");
    }
    let _ = probe_well(&mut scene);
    assert_eq!(scene.breaker(NAME).word(), "closed");
}

#[test]
fn a_probe_that_comes_to_nothing_is_followed_by_another() {
    let mut scene = open(3, 9);
    scene.at(60);
    let _ = scene.start();
    assert_eq!(scene.held(), [0, 1, 2], "others have more attempts left");
    for cause in [FailureCause::Interrupted, FailureCause::Exit(127)] {
        let [item] = started(&scene.start())[..] else {
            panic!("no probe");
        };
        let _ = scene.fail(item, cause);
        let phase = scene.breaker(NAME).breaker.circuit();
        assert_eq!(phase, CircuitState::HalfOpen { successes: 0, probing: false });
    }
    assert_eq!(started(&scene.start()).len(), 1);
}

#[test]
fn the_held_item_with_the_most_attempts_left_probes() {
    let mut scene = Scene::over(&map(2, ", half_open_max_calls: 9", ""), 3);
    let _ = scene.start();
    let _ = scene.succeed(1);
    // The first has failed twice, the last once.
    let _ = scene.fail(0, FailureCause::Exit(1));
    scene.at(1);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    let _ = scene.fail(2, FailureCause::Exit(1));
    scene.at(10);
    let _ = scene.start();
    assert_eq!(scene.held(), [0, 2]);
    // Of two that have equally many left, the first in input order.
    for (now, expected) in [(61, 2), (121, 0), (181, 2), (241, 0)] {
        scene.at(now);
        assert_eq!(started(&scene.start()), [expected], "at {now}s");
        let _ = scene.fail(expected, FailureCause::Exit(1));
        scene.pass(secs(2));
        let _ = scene.start();
        assert_eq!(scene.held(), [0, 2]);
    }
}

#[test]
fn a_long_outage_costs_no_item_its_round() {
    // Ten items with ten attempts each: the probes of an hour are shared by all of them.
    let mut scene = open(10, 10);
    for item in 3..10 {
        let _ = scene.fail(item, FailureCause::Exit(1));
    }
    for minute in 1..60 {
        scene.at(65 * minute);
        let [item] = started(&scene.start())[..] else {
            panic!("one probe at a time");
        };
        let _ = scene.fail(item, FailureCause::Exit(1));
        scene.pass(secs(2));
        let _ = scene.start();
    }
    let made: Vec<u32> = (0..10).map(|item| scene.active(item).attempts).collect();
    let (least, most) = (made.iter().min().unwrap(), made.iter().max().unwrap());
    assert!(most - least <= 1, "{made:?}");
    assert!(scene.counted().0 > 40, "{made:?}");
    assert_eq!(scene.came_to().2, [0, 0, 0]);
}

#[test]
fn commands_with_other_bounds_share_a_breaker_and_the_one_with_more_left_probes() {
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
    let mut scene = Scene::over(text, 4);
    let _ = scene.start();
    let _ = scene.succeed(1);
    let _ = scene.start();
    // The second item is at its second command and has failed once: 20 attempts are left.
    let _ = scene.fail(1, FailureCause::Exit(1));
    let _ = scene.fail(0, FailureCause::Exit(1));
    let _ = scene.start();
    assert_eq!(scene.held(), [2, 3]);
    scene.at(2);
    let _ = scene.start();
    assert_eq!(scene.held(), [0, 1, 2, 3]);
    scene.at(62);
    assert_eq!(started(&scene.start()), [1]);
}

#[test]
fn an_item_that_never_started_probes_if_it_has_the_most_attempts_left() {
    let mut scene = Scene::over(&map(1, "", ""), 2);
    for _ in 0..3 {
        let _ = scene.start();
        let _ = scene.fail(0, FailureCause::Exit(1));
        scene.pass(secs(1));
    }
    assert_eq!(scene.breaker(NAME).word(), "open");
    scene.at(5);
    let _ = scene.start();
    assert_eq!(scene.held(), [0], "there is room for one");
    scene.at(62);
    assert_eq!(started(&scene.start()), [1]);
    let _ = scene.succeed(1);
    assert_eq!(started(&scene.start()), [0], "there is nobody else");
}

#[test]
fn a_command_without_a_bound_has_the_most_attempts_left() {
    let text = map(1, "", "").replace("attempts: 9", "attempts: unlimited");
    let mut scene = opened_alone(&text);
    scene.at(62);
    let _ = scene.start();
    assert_eq!(scene.job.starts.running.len(), 1);
}

/// One item at a time, the first of two has opened the breaker.
fn opened_alone(text: &str) -> Scene {
    let mut scene = Scene::over(text, 2);
    for _ in 0..3 {
        let _ = scene.start();
        let _ = scene.fail(0, FailureCause::Exit(1));
        scene.pass(secs(1));
    }
    let _ = scene.start();
    scene
}

#[test]
fn a_command_that_names_no_breaker_is_not_gated() {
    let text = format!("{}    - shell: b\n", map(2, "", ""));
    let mut scene = Scene::over(&text, 4);
    let _ = scene.start();
    let _ = scene.succeed(0);
    let _ = scene.start();
    let _ = scene.fail(1, FailureCause::Exit(1));
    let _ = scene.start();
    let _ = scene.fail(2, FailureCause::Exit(1));
    scene.at(1);
    let _ = scene.start();
    let _ = scene.fail(1, FailureCause::Exit(1));
    assert_eq!(scene.breaker(NAME).word(), "open");
    assert_eq!(said(&scene.succeed(0))[1], "item_succeeded 0/0");
}

/// A request and a shell command after it, with one more that runs if the request has failed for good.
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
    let mut scene = Scene::over(REQUEST, 2);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Status(503));
    assert_eq!(scene.breaker("http://pay.test").word(), "open");
    let _ = scene.succeed(1);
    let records = scene.start();
    assert_eq!(
        said(&records),
        ["attempt_started 0/0 1.1 as 3", "attempt_started 0/1 2.1 as 4"],
        "nothing is held"
    );
    let passes = records.iter().filter_map(|record| match &record.event {
        Event::Item(ItemEvent::AttemptStarted(started)) => started.pass.as_ref(),
        _ => None,
    });
    assert_eq!(passes.count(), 0);
    let open = scene.breaker("http://pay.test").clone();
    let _ = scene.fail(0, FailureCause::Timeout);
    let _ = scene.succeed(1);
    assert_eq!(scene.breaker("http://pay.test"), &open, "their ends say nothing about it");
}

#[test]
fn an_origin_whose_breaker_has_no_journal_yet_has_the_settings_of_the_command_that_runs() {
    let mut scene = Scene::over(REQUEST, 1);
    let origin = "http://pay.test";
    assert_eq!(scene.job.breaker_settings(origin).failure_threshold, 5);
    let _ = scene.start();
    assert_eq!(scene.refolded().breaker_settings(origin).failure_threshold, 1);
    assert_eq!(scene.job.breaker_settings("http://mail.test").failure_threshold, 5);
}

#[test]
fn the_handler_of_a_request_runs_although_the_request_has_opened_its_breaker() {
    let mut scene = Scene::over(REQUEST, 1);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Status(503));
    assert_eq!(said(&scene.start()), ["attempt_started 0/0 1.1 as 2"]);
}

#[test]
fn a_list_asks_its_breakers_too_and_waits() {
    let text = "
- shell: a
  breaker: {name: payments, failure_threshold: 1, half_open_max_calls: 1}
  retry_config: {attempts: 3}
- shell: b
";
    let mut scene = Scene::of(text);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    scene.at(1);
    assert_eq!(said(&scene.start()), ["held 0/0 0.1 until +60s"]);
    assert_eq!(scene.next_wake(), Some(at(60)));
    scene.at(60);
    let _ = scene.start();
    let _ = scene.succeed(0);
    let _ = scene.start();
    let _ = scene.succeed(0);
    assert_eq!(scene.came_to().0, "completed");
}

#[test]
fn an_outage_costs_no_more_than_threshold_width_and_probes() {
    let (width, items) = (7, 100);
    let mut scene = Scene::over(&map(width, "", ""), items);
    let mut down = 0;
    while scene.now < at(600) {
        let _ = scene.start();
        match scene.job.starts.running.values().next().copied() {
            Some(item) => {
                down += 1;
                let _ = scene.fail(item.index, FailureCause::Exit(1));
            }
            None => scene.now = scene.next_wake().unwrap(),
        }
    }
    let probes = down - scene.counted().0.min(3 + u64::from(width) - 1);
    assert!(down <= 3 + u64::from(width) - 1 + 10, "{down} attempts, {probes} probes");
    finish(&mut scene);
    assert_eq!(scene.came_to(), ("completed", None, [100, 0, 0]));
}

/// From here on everything goes well.
pub(crate) fn finish(scene: &mut Scene) {
    for _ in 0..10_000 {
        if scene.job.stage.has_ended() {
            return;
        }
        let _ = scene.start();
        if let Some(start) = scene.job.starts.running.keys().next().copied() {
            let _ = scene.end(undaunted_engine::input::AttemptEnd { start, ..Default::default() });
        } else if scene.ready().is_empty() {
            scene.now = scene.next_wake().expect("something happens").max(scene.now);
            let _ = scene.tell(&undaunted_engine::input::Input::Woke);
        }
    }
    panic!("it does not end: {}", crate::scene::digest(&scene.job));
}
