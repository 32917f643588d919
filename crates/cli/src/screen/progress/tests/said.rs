//! The lines that are said of a job, as usual and with `--verbose`.

use snapbox::{IntoData, assert_data_eq, str};
use undaunted_engine::breaker::{BreakerFact, BreakerRecord, TargetSignal};
use undaunted_engine::id::StepId;
use undaunted_engine::input::Input;

use super::jobs::{MAP, Scene};
use crate::screen::progress::sentences::{headline, leaving};

fn said(verbose: bool) -> String {
    let mut scene = Scene::of(MAP);
    scene.read(StepId(0), &["north", "so\u{1b}[2Juth"]);
    scene.start();
    scene.tell(&Input::Pause);
    scene.wait(1500);
    scene.tell(&Input::Unpause);
    scene.end(StepId(0).item(0), None);
    scene.end(StepId(0).item(1), Some("it says:\n\x1b[1mno\x1b[0m answer"));
    scene.wait(8000);
    scene.start();
    scene.end(StepId(0).item(1), Some("no\tanswer\nstill none"));
    scene.tell(&Input::Woke);
    scene.start();
    scene.end(StepId(1).item(0), None);
    format!("{}\n{}", headline(&scene.job), lines_of(&scene, verbose))
}

#[test]
fn as_usual_what_fails_and_what_follows_is_said() {
    assert_data_eq!(said(false), str![[r"
job 7f3k  regions
  map: 2 items, 3 at a time
  paused; go on:  undaunted unpause 7f3k
  goes on after 1.5s paused
  so\u{1b}[2Juth: attempt 1 of 2 failed (exit status 1: \u{1b}[1mno\u{1b}[0m answer); retry 1 of 1 in 8s
  so\u{1b}[2Juth: stopped after 2 attempts: All attempts used (1 retry, 2 attempts); last error: exit status 1: no answer
    still none

"]].raw());
}

#[test]
fn every_start_and_success_is_said_to_whoever_wants_to_know() {
    assert_data_eq!(said(true), str![[r"
job 7f3k  regions
  map: 2 items, 3 at a time
  north: attempt 1 starts
  so\u{1b}[2Juth: attempt 1 starts
  paused; go on:  undaunted unpause 7f3k
  goes on after 1.5s paused
  north: attempt 1 succeeded
  so\u{1b}[2Juth: attempt 1 of 2 failed (exit status 1: \u{1b}[1mno\u{1b}[0m answer); retry 1 of 1 in 8s
  so\u{1b}[2Juth: attempt 2 starts
  so\u{1b}[2Juth: stopped after 2 attempts: All attempts used (1 retry, 2 attempts); last error: exit status 1: no answer
    still none
  report: attempt 1 starts
  report: attempt 1 succeeded

"]].raw());
}

const OUTAGE: &str = "
name: orders
mode: mapreduce
map:
  input: orders.json
  max_parallel: 3
  error_policy: {retry_config: {attempts: 3, backoff: fixed, initial_delay: 1s}}
  agent_template:
    - id: charge
      shell: ./charge
      breaker: {name: payments, failure_threshold: 2, recovery_timeout: 30s, half_open_max_calls: 1}
";

/// Two failures open the breaker, the first probe fails, the second closes it.
fn outage(verbose: bool) -> String {
    let mut scene = Scene::of(OUTAGE);
    scene.read(StepId(0), &["a", "b", "c", "d"]);
    scene.start();
    scene.end(StepId(0).item(0), Some("no answer"));
    scene.end(StepId(0).item(1), Some("no answer"));
    scene.end(StepId(0).item(2), Some("no answer"));
    scene.start();
    scene.wait(1000);
    scene.start();
    scene.wait(30_000);
    scene.start();
    scene.end_running(Some("still no answer"));
    scene.wait(31_000);
    scene.start();
    scene.end_running(None);
    scene.wait(3000);
    scene.start();
    while scene.end_running(None) {
        scene.start();
    }
    lines_of(&scene, verbose).to_owned()
}

fn lines_of(scene: &Scene, verbose: bool) -> &str {
    let [usual, all] = &scene.said;
    if verbose { all } else { usual }
}

#[test]
fn an_outage_is_said_when_it_begins_and_when_it_is_over() {
    assert_data_eq!(
        outage(false),
        str![[r"
  map: 4 items, 3 at a time
  a: attempt 1 of 4 failed (exit status 1: no answer); retry 1 of 3 in 1s
  payments opens (2 failures in a row): what asks it is held; it looks again in 30s
  b: attempt 1 of 4 failed (exit status 1: no answer); retry 1 of 3 in 1s
  c: attempt 1 of 4 failed (exit status 1: no answer); retry 1 of 3 in 1s
  payments opens (the probe failed): what asks it is held; it looks again in 30s
  d: attempt 1 of 4 failed (exit status 1: still no answer); retry 1 of 3 in 1s
  payments closes: the target is back; 3 items go on
  a: attempt 2 succeeded
  b: attempt 2 succeeded
  c: attempt 2 succeeded
  d: attempt 2 succeeded

"]]
        .raw()
    );
}

#[test]
fn every_hold_and_release_is_said_to_whoever_wants_to_know() {
    assert_data_eq!(
        outage(true),
        str![[r"
  map: 4 items, 3 at a time
  a: attempt 1 starts
  b: attempt 1 starts
  c: attempt 1 starts
  a: attempt 1 of 4 failed (exit status 1: no answer); retry 1 of 3 in 1s
  payments opens (2 failures in a row): what asks it is held; it looks again in 30s
  b: attempt 1 of 4 failed (exit status 1: no answer); retry 1 of 3 in 1s
  c: attempt 1 of 4 failed (exit status 1: no answer); retry 1 of 3 in 1s
  d: held by payments, it looks again in 30s
  a: held by payments, it looks again in 29s
  b: held by payments, it looks again in 29s
  c: held by payments, it looks again in 29s
  payments: one goes ahead to find out
  d: let go by payments after 31s
  d: attempt 1 starts
  payments opens (the probe failed): what asks it is held; it looks again in 30s
  d: attempt 1 of 4 failed (exit status 1: still no answer); retry 1 of 3 in 1s
  payments: one goes ahead to find out
  a: let go by payments after 1m1s
  a: attempt 2 starts
  d: held by payments, a probe is under way
  payments closes: the target is back; 3 items go on
  a: attempt 2 succeeded
  b: let go by payments after 1m4s
  b: attempt 2 starts
  c: let go by payments after 1m4s
  c: attempt 2 starts
  d: let go by payments after 3s
  d: attempt 2 starts
  b: attempt 2 succeeded
  c: attempt 2 succeeded
  d: attempt 2 succeeded

"]]
        .raw()
    );
}

#[test]
fn a_breaker_that_another_job_has_opened_is_said_once() {
    let mut scene = Scene::of(OUTAGE);
    let failed = BreakerFact::Reported {
        at: scene.now,
        generation: 0,
        probe: false,
        signal: TargetSignal::Down,
        many: 2,
    };
    let failed = BreakerRecord { job: Some("another".to_owned()), ..BreakerRecord::by_hand(vec![failed]) };
    scene.breakers.tick(scene.now);
    assert!(scene.breakers.extend("payments", [(1, failed)]));
    scene.read(StepId(0), &["a", "b", "c", "d"]);
    scene.start();
    assert_data_eq!(
        lines_of(&scene, false).to_owned(),
        str![[r"
  payments opens (2 failures in a row): what asks it is held; it looks again in 30s
  map: 4 items, 3 at a time

"]]
        .raw()
    );
}

#[test]
fn a_rule_that_holds_is_said_with_the_failure() {
    let rules = "rules: [{exit_code: 1, then: hold}], backoff: fixed";
    let mut scene = Scene::of(&OUTAGE.replace("backoff: fixed", rules));
    scene.read(StepId(0), &["a"]);
    scene.start();
    scene.end(StepId(0).item(0), Some("down for maintenance"));
    assert_data_eq!(lines_of(&scene, false).to_owned(), str![[r"
  map: 1 item, 3 at a time
  payments opens (a rule says so): what asks it is held; it looks again in 30s
  a: attempt 1 of 4 failed (exit status 1: down for maintenance); retry 1 of 3 when payments lets it go, it looks again in 30s

"]].raw());
}

/// Two of four are enough.
fn best_effort(more: &str) -> Scene {
    let rule = format!("input: orders.json\n  best_effort: true\n  best_effort_min_dcs: 2\n{more}");
    let mut scene = Scene::of(&MAP.replace("input: regions.json", &rule));
    scene.read(StepId(0), &["north", "east", "south", "west"]);
    scene.start();
    scene
}

#[test]
fn a_completion_rule_says_what_it_did_not_wait_for() {
    let mut scene = best_effort("");
    scene.end(StepId(0).item(0), None);
    scene.end(StepId(0).item(1), None);
    assert_data_eq!(
        lines_of(&scene, false).to_owned(),
        str![[r"
  map: 4 items, 3 at a time
  map: 2 of 4 are enough; 2 not waited for

"]]
        .raw()
    );
    let mut scene = best_effort("  best_effort_deadline_seconds: 9\n");
    scene.end(StepId(0).item(0), None);
    scene.wait(9000);
    scene.tell(&Input::Woke);
    assert_data_eq!(
        lines_of(&scene, false).to_owned(),
        str![[r"
  map: 4 items, 3 at a time
  map: time is up, 1 of 2 needed succeeded; 3 not waited for

"]]
        .raw()
    );
    let mut scene = best_effort("  on_complete: leave\n");
    scene.end(StepId(0).item(0), None);
    scene.end(StepId(0).item(1), None);
    scene.end(StepId(0).item(2), None);
    assert_data_eq!(
        lines_of(&scene, false).to_owned(),
        str![[r"
  map: 4 items, 3 at a time
  map: 2 of 4 are enough; 2 not waited for
  south: came late, succeeded, and does not count

"]]
        .raw()
    );
}

#[test]
fn more_retries_for_all_are_said() {
    let pool = MAP.replace("mode: mapreduce", "mode: mapreduce\nretry_budget: 5");
    let mut scene = Scene::of(&pool);
    scene.tell(&Input::TopUp { retries: 10 });
    assert_data_eq!(
        lines_of(&scene, false).to_owned(),
        str![[r"
  10 more retries are allowed, 15 in all

"]]
        .raw()
    );
}

#[test]
fn whoever_asks_to_leave_is_told_what_it_waits_for() {
    let lines = [(1, 0), (1, 1), (1, 3), (2, 3)];
    let lines = lines.map(|(asked, running)| leaving(asked, running).unwrap_or_default() + "\n");
    assert_data_eq!(
        lines.concat(),
        str![[r"

  waiting for 1 command to finish; Ctrl-C again ends it now
  waiting for 3 commands to finish; Ctrl-C again ends them now
  ending 3 commands (TERM, then KILL)

"]]
        .raw()
    );
}
