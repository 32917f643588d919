//! The progress lines of a job, by default and with `--verbose`.

use snapbox::{IntoData, assert_data_eq, str};
use undaunted_engine::breaker::{BreakerFact, BreakerRecord, TargetSignal};
use undaunted_engine::id::StepId;
use undaunted_engine::input::Input;

use super::MAP;
use crate::screen::fixture::JobFixture;
use crate::screen::progress::sentences::{headline, leaving};

fn printed(verbose: bool) -> String {
    let mut fixture = JobFixture::of(MAP);
    fixture.read(StepId(0), &["north", "so\u{1b}[2Juth"]);
    fixture.start();
    fixture.feed(&Input::Pause);
    fixture.wait(1500);
    fixture.feed(&Input::Unpause);
    fixture.end(StepId(0).item(0), None);
    fixture.end(StepId(0).item(1), Some("it says:\n\x1b[1mno\x1b[0m answer"));
    fixture.wait(8000);
    fixture.start();
    fixture.end(StepId(0).item(1), Some("no\tanswer\nstill none"));
    fixture.feed(&Input::Woke);
    fixture.start();
    fixture.end(StepId(1).item(0), None);
    format!("{}\n{}", headline(&fixture.job), lines_of(&fixture, verbose))
}

#[test]
fn by_default_failures_and_their_consequences_are_printed() {
    assert_data_eq!(printed(false), str![[r"
job 7f3k  regions
  map: 2 items, 3 at a time
  paused; to unpause:  undaunted unpause 7f3k
  unpaused after 1.5s
  so\u{1b}[2Juth: attempt 1 of 2 failed (exit status 1: \u{1b}[1mno\u{1b}[0m answer); retry 1 of 1 in 8s
  so\u{1b}[2Juth: stopped after 2 attempts: All attempts used (1 retry, 2 attempts); last error: exit status 1: no answer
    still none

"]].raw());
}

#[test]
fn verbose_output_has_every_start_and_success() {
    assert_data_eq!(printed(true), str![[r"
job 7f3k  regions
  map: 2 items, 3 at a time
  north: attempt 1 started
  so\u{1b}[2Juth: attempt 1 started
  paused; to unpause:  undaunted unpause 7f3k
  unpaused after 1.5s
  north: attempt 1 succeeded
  so\u{1b}[2Juth: attempt 1 of 2 failed (exit status 1: \u{1b}[1mno\u{1b}[0m answer); retry 1 of 1 in 8s
  so\u{1b}[2Juth: attempt 2 started
  so\u{1b}[2Juth: stopped after 2 attempts: All attempts used (1 retry, 2 attempts); last error: exit status 1: no answer
    still none
  report: attempt 1 started
  report: attempt 1 succeeded

"]].raw());
}

#[test]
fn a_redrive_of_a_paused_job_says_that_it_waits_for_unpause() {
    let mut fixture = JobFixture::of("commands: [{id: only, shell: a}]");
    fixture.start();
    fixture.feed(&Input::Pause);
    fixture.end(StepId(0).item(0), Some("broken"));
    fixture.feed(&Input::Redrive { items: vec![StepId(0).item(0)], reduce: false, every: None });
    assert_data_eq!(
        lines_of(&fixture, false),
        str![[r"
  paused; to unpause:  undaunted unpause 7f3k
  only: stopped after 1 attempt: exit status 1: broken
  paused; to unpause:  undaunted unpause 7f3k

"]]
        .raw()
    );
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
    let mut fixture = JobFixture::of(OUTAGE);
    fixture.read(StepId(0), &["a", "b", "c", "d"]);
    fixture.start();
    fixture.end(StepId(0).item(0), Some("no answer"));
    fixture.end(StepId(0).item(1), Some("no answer"));
    fixture.end(StepId(0).item(2), Some("no answer"));
    fixture.start();
    fixture.wait(1000);
    fixture.start();
    fixture.wait(30_000);
    fixture.start();
    fixture.end_running(Some("still no answer"));
    fixture.wait(31_000);
    fixture.start();
    fixture.end_running(None);
    fixture.wait(3000);
    fixture.start();
    while fixture.end_running(None) {
        fixture.start();
    }
    lines_of(&fixture, verbose).to_owned()
}

fn lines_of(fixture: &JobFixture, verbose: bool) -> &str {
    let [usual, all] = &fixture.lines;
    if verbose { all } else { usual }
}

#[test]
fn the_begin_and_end_of_an_outage_are_printed() {
    assert_data_eq!(
        outage(false),
        str![[r"
  map: 4 items, 3 at a time
  a: attempt 1 of 4 failed (exit status 1: no answer); retry 1 of 3 in 1s
  breaker `payments` opened (2 failures in a row); its commands are on hold, next probe in 30s
  b: attempt 1 of 4 failed (exit status 1: no answer); retry 1 of 3 in 1s
  c: attempt 1 of 4 failed (exit status 1: no answer); retry 1 of 3 in 1s
  breaker `payments` opened (the probe failed); its commands are on hold, next probe in 30s
  d: attempt 1 of 4 failed (exit status 1: still no answer); retry 1 of 3 in 1s
  breaker `payments` closed: the target is back; releasing 3 items
  a: attempt 2 succeeded
  b: attempt 2 succeeded
  c: attempt 2 succeeded
  d: attempt 2 succeeded

"]]
        .raw()
    );
}

#[test]
fn verbose_output_has_every_hold_and_release() {
    assert_data_eq!(
        outage(true),
        str![[r"
  map: 4 items, 3 at a time
  a: attempt 1 started
  b: attempt 1 started
  c: attempt 1 started
  a: attempt 1 of 4 failed (exit status 1: no answer); retry 1 of 3 in 1s
  breaker `payments` opened (2 failures in a row); its commands are on hold, next probe in 30s
  b: attempt 1 of 4 failed (exit status 1: no answer); retry 1 of 3 in 1s
  c: attempt 1 of 4 failed (exit status 1: no answer); retry 1 of 3 in 1s
  d: held by payments, next probe in 30s
  a: held by payments, next probe in 29s
  b: held by payments, next probe in 29s
  c: held by payments, next probe in 29s
  breaker `payments` half open: probing
  d: released by payments after 31s
  d: attempt 1 started
  breaker `payments` opened (the probe failed); its commands are on hold, next probe in 30s
  d: attempt 1 of 4 failed (exit status 1: still no answer); retry 1 of 3 in 1s
  breaker `payments` half open: probing
  a: released by payments after 1m1s
  a: attempt 2 started
  d: held by payments, probing
  breaker `payments` closed: the target is back; releasing 3 items
  a: attempt 2 succeeded
  b: released by payments after 1m4s
  b: attempt 2 started
  c: released by payments after 1m4s
  c: attempt 2 started
  d: released by payments after 3s
  d: attempt 2 started
  b: attempt 2 succeeded
  c: attempt 2 succeeded
  d: attempt 2 succeeded

"]]
        .raw()
    );
}

#[test]
fn a_breaker_opened_by_another_job_is_printed_once() {
    let mut fixture = JobFixture::of(OUTAGE);
    let failed = BreakerFact::Reported {
        at: fixture.now,
        generation: 0,
        probe: false,
        signal: TargetSignal::Down,
        many: 2,
    };
    let failed = BreakerRecord { job: Some("another".to_owned()), ..BreakerRecord::by_hand(vec![failed]) };
    fixture.breakers.tick(fixture.now);
    assert!(fixture.breakers.extend("payments", [(1, failed)]));
    fixture.read(StepId(0), &["a", "b", "c", "d"]);
    fixture.start();
    assert_data_eq!(
        lines_of(&fixture, false).to_owned(),
        str![[r"
  breaker `payments` opened (2 failures in a row); its commands are on hold, next probe in 30s
  map: 4 items, 3 at a time

"]]
        .raw()
    );
}

#[test]
fn a_hold_by_a_rule_is_printed_with_the_failure() {
    let rules = "rules: [{exit_code: 1, then: hold}], backoff: fixed";
    let mut fixture = JobFixture::of(&OUTAGE.replace("backoff: fixed", rules));
    fixture.read(StepId(0), &["a"]);
    fixture.start();
    fixture.end(StepId(0).item(0), Some("down for maintenance"));
    assert_data_eq!(lines_of(&fixture, false).to_owned(), str![[r"
  map: 1 item, 3 at a time
  breaker `payments` opened (a rule tripped it); its commands are on hold, next probe in 30s
  a: attempt 1 of 4 failed (exit status 1: down for maintenance); retry 1 of 3 when payments releases it, next probe in 30s

"]].raw());
}

/// Two of four are enough.
fn best_effort(more: &str) -> JobFixture {
    let rule = format!("input: orders.json\n  best_effort: true\n  best_effort_min_dcs: 2\n{more}");
    let mut fixture = JobFixture::of(&MAP.replace("input: regions.json", &rule));
    fixture.read(StepId(0), &["north", "east", "south", "west"]);
    fixture.start();
    fixture
}

#[test]
fn a_completion_rule_reports_what_it_did_not_wait_for() {
    let mut enough = best_effort("");
    enough.end(StepId(0).item(0), None);
    enough.end(StepId(0).item(1), None);
    let mut late = best_effort("  best_effort_deadline_seconds: 9\n");
    late.end(StepId(0).item(0), None);
    late.wait(9000);
    late.feed(&Input::Woke);
    let mut left = best_effort("  on_complete: leave\n");
    for item in 0..3 {
        left.end(StepId(0).item(item), None);
    }
    let lines = [enough, late, left].map(|fixture| lines_of(&fixture, false).to_owned());
    assert_data_eq!(
        lines.concat(),
        str![[r"
  map: 4 items, 3 at a time
  map: 2 of 4 succeeded, 2 required; 2 not waited for
  map: 4 items, 3 at a time
  map: deadline passed: 1 of 4 succeeded, 2 required; 3 not waited for
  map: 4 items, 3 at a time
  map: 2 of 4 succeeded, 2 required; 2 not waited for
  south: late result: succeeded, not counted

"]]
        .raw()
    );
}

#[test]
fn a_top_up_is_printed() {
    let pool = MAP.replace("mode: mapreduce", "mode: mapreduce\nretry_budget: 5");
    let mut fixture = JobFixture::of(&pool);
    fixture.feed(&Input::TopUp { retries: 10 });
    assert_data_eq!(
        lines_of(&fixture, false).to_owned(),
        str![[r"
  10 retries added to the pool, 15 in total

"]]
        .raw()
    );
}

#[test]
fn an_interrupt_prints_what_the_job_waits_for() {
    let lines = [(1, 0), (1, 1), (1, 3), (2, 3)];
    let lines = lines.map(|(asked, running)| leaving(asked, running).unwrap_or_default() + "\n");
    assert_data_eq!(
        lines.concat(),
        str![[r"

  waiting for 1 command to finish; press Ctrl-C again to stop it now
  waiting for 3 commands to finish; press Ctrl-C again to stop them now
  stopping 3 commands (TERM, then KILL)

"]]
        .raw()
    );
}
