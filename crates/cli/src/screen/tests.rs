//! The output of `show` and `explain` for a job that was interrupted, suspended, cancelled or resumed late.

use std::collections::BTreeMap;

use snapbox::{IntoData, assert_data_eq, str};
use undaunted_engine::breaker::AdmissionControl;
use undaunted_engine::id::StepId;
use undaunted_engine::input::Input;
use undaunted_engine::view::{ItemView, JobExplanation, JobView, ViewContext};
use undaunted_policy::FailureCause;

use super::explain;
use super::fixture::JobFixture;
use super::job::{JobLayout, show};

const MAP: &str = "
name: nightly
mode: mapreduce
map:
  input: a.json
  max_parallel: 2
  agent_timeout_secs: 100
  error_policy: {retry_config: {attempts: 2, backoff: fixed, initial_delay: 10s, retry_budget: 30s}}
  agent_template: [{id: ask, shell: ask}]
reduce: [{id: sum, shell: sum}]
";

/// Of the items `north`, `east` and `south` the first waits until 20 s and the second is running.
fn fixture() -> JobFixture {
    let mut fixture = JobFixture::of(MAP);
    fixture.read(StepId(0), &["north", "east", "south"]);
    fixture.start();
    fixture.wait(10_000);
    fixture.end(StepId(0).item(0), Some("no answer"));
    fixture
}

/// As [`printed_with_history`], with the attempts of the item left out.
fn printed(fixture: &JobFixture) -> String {
    let text = printed_with_history(fixture);
    let (before, rest) = text.split_once("  ask, attempt 1").expect("an attempt");
    let (_, after) = rest.split_once("\n\n").expect("an end");
    format!("{before}  …\n\n{after}")
}

/// The output of `show` and `explain` for the job and its first item, while no process runs it.
fn printed_with_history(fixture: &JobFixture) -> String {
    let now = fixture.now;
    let context = ViewContext {
        job: &fixture.job,
        projection: &fixture.projection,
        breakers: &AdmissionControl::default(),
        owner: None,
        seen: None,
        now,
    };
    let item = StepId(0).item(0);
    let history = &fixture.projection.items.items[&item];
    let layout = JobLayout { now, columns: 80, colour: false };
    let mut out = Vec::new();
    let view = JobView::of(&context, &BTreeMap::new());
    show(&mut out, &view, &layout).expect("written");
    out.extend(b"---\n");
    explain::job(&mut out, &JobExplanation::of(&context), now).expect("written");
    out.extend(b"---\n");
    let view = ItemView::of(&context, item, None, history);
    explain::item(&mut out, &view, now).expect("written");
    String::from_utf8(out).expect("text")
}

#[test]
fn an_interrupted_job_says_what_resuming_will_do() {
    let mut fixture = fixture();
    fixture.wait(1_000_000);
    assert_data_eq!(printed_with_history(&fixture), str![[r"
job 7f3k  nightly
  status     interrupted (run 1)
  submitted  2023-11-14T22:13:20.000Z
  progress   0 of 3 items succeeded; 2 attempts
  map        running, 0 of 3 done, 1 running, 1 waiting
  sum        waiting
    north: attempt 1 of 3 failed (exit status 1: no answer); retry 1 of 2 due now
  deadline   each item has 1m40s from its first start
  resume: undaunted resume 7f3k
  why:    undaunted explain 7f3k
  events: undaunted events 7f3k
---
job 7f3k  nightly
  interrupted: its process died; resume with `undaunted resume 7f3k`
  0 of 3 items succeeded; 2 attempts
  pool           none; only the limits of each command apply
  deadline       each item has 1m40s from its first start

  north: waiting for retry 1 of 2 (attempt 2 of 3), due since 2023-11-14T22:13:40.000Z
    no answer
    undaunted explain 7f3k/north
---
job 7f3k  item north
  waiting for retry 1 of 2 (attempt 2 of 3), due since 2023-11-14T22:13:40.000Z; no process is running the job: undaunted resume 7f3k
    deadline   2023-11-14T22:15:00.000Z, 15m10s ago

  ask, attempt 1 of 3: failed after 1.5s
    at         2023-11-14T22:13:20.000Z
    failure    exit status 1: no answer
    rule       none matched; the failure is transient
    delay      10s computed, 10s capped, 10s drawn
    decision   retry 1 of 2 (attempt 2 of 3) in 10s, due 2023-11-14T22:13:40.000Z
    retries    0 → 1 of 2
    budget     0s → 10s of 30s
    expires    2023-11-14T22:14:00.000Z, if the job is not running by then
    deadline   2023-11-14T22:15:00.000Z, 1m20s after the retry falls due

  when the job is resumed, the retry is refused:
    then it stops (retry_budget_expired): Retry budget expired during downtime (budget 30s)
    refused    retry 1 of 2 (attempt 2 of 3), after 0 retries
    overdue    16m30s: 10s spent plus 16m30s late exceeds the budget of 30s
    expired    2023-11-14T22:14:00.000Z, while no process was running the job

  output:  undaunted logs 7f3k/north

"]].raw());
}

#[test]
fn the_deadlines_of_items_do_not_advance_while_their_job_is_suspended() {
    let mut fixture = fixture();
    fixture.end_with(StepId(0).item(1), Some(FailureCause::Timeout), "");
    fixture.feed(&Input::Suspend);
    fixture.wait(50_000);
    assert_data_eq!(printed(&fixture), str![[r"
job 7f3k  nightly
  status     suspended (run 1)
  submitted  2023-11-14T22:13:20.000Z
  progress   0 of 3 items succeeded; 2 attempts
  map        running, 0 of 3 done, 2 waiting
  sum        waiting
    north: attempt 1 of 3 failed (exit status 1: no answer); retry 1 of 2 due now
    east: attempt 1 of 3 failed (timed out); retry 1 of 2 due now
  deadline   each item has 1m40s from its first start
  resume: undaunted resume 7f3k
  why:    undaunted explain 7f3k
  events: undaunted events 7f3k
---
job 7f3k  nightly
  suspended; resume with `undaunted resume 7f3k`
  0 of 3 items succeeded; 2 attempts
  pool           none; only the limits of each command apply
  deadline       each item has 1m40s from its first start

  north: waiting for retry 1 of 2 (attempt 2 of 3), due since 2023-11-14T22:13:40.000Z
    no answer
    undaunted explain 7f3k/north

  east: waiting for retry 1 of 2 (attempt 2 of 3), due since 2023-11-14T22:13:40.000Z
    undaunted explain 7f3k/east
---
job 7f3k  item north
  waiting for retry 1 of 2 (attempt 2 of 3), due since 2023-11-14T22:13:40.000Z; no process is running the job: undaunted resume 7f3k
    deadline   2023-11-14T22:15:50.000Z, in 1m30s

  …

  if it keeps failing the same way, immediately each time:
    retry 2 of 2 (attempt 3 of 3) in 10s, 20s of 30s spent
    then it stops (attempts): All attempts used (2 retries, 3 attempts)

  output:  undaunted logs 7f3k/north

"]].raw());
}

#[test]
fn a_cancelled_job_continues_nothing() {
    let mut fixture = fixture();
    fixture.feed(&Input::Cancel);
    fixture.end_with(StepId(0).item(1), Some(FailureCause::Signal(15)), "");
    assert_data_eq!(
        printed(&fixture),
        str![[r"
job 7f3k  nightly
  status     cancelled (run 1)
  submitted  2023-11-14T22:13:20.000Z
  progress   0 of 3 items succeeded, 2 skipped, 1 never started; 2 attempts; took 10s
  map        cancelled, 0 of 3 done, 2 skipped
  sum        not started
  deadline   each item has 1m40s from its first start
  why:    undaunted explain 7f3k
  events: undaunted events 7f3k
---
job 7f3k  nightly
  cancelled (cancelled): Cancelled
  0 of 3 items succeeded, 2 skipped, 1 never started; 2 attempts; took 10s
  pool           none; only the limits of each command apply
  deadline       each item has 1m40s from its first start
  never started  south (cancelled)
---
job 7f3k  item north
  skipped (cancelled): Cancelled

  …

  output:  undaunted logs 7f3k/north

"]]
        .raw()
    );
}

#[test]
fn a_retry_refused_after_downtime_says_how_late_it_was() {
    let mut fixture = fixture();
    fixture.wait(1_000_000);
    fixture.feed(&Input::Resume { last_seen: None });
    assert_data_eq!(
        printed(&fixture),
        str![[r"
job 7f3k  nightly
  status     interrupted (run 2)
  submitted  2023-11-14T22:13:20.000Z
  progress   0 of 3 items succeeded, 1 dead letter; 2 attempts
  error      Retry budget expired during downtime (budget 30s); last error: exit status 1: no answer
  map        running, 0 of 3 done, 1 running, 1 dead
    dead: north (retry_budget_expired)
  sum        waiting
  deadline   each item has 1m40s from its first start
  resume: undaunted resume 7f3k
  why:    undaunted explain 7f3k
  events: undaunted events 7f3k
---
job 7f3k  nightly
  interrupted: its process died; resume with `undaunted resume 7f3k`
  0 of 3 items succeeded, 1 dead letter; 2 attempts
  first failure  Retry budget expired during downtime (budget 30s); last error: exit status 1: no answer
  pool           none; only the limits of each command apply
  deadline       each item has 1m40s from its first start

  north: dead letter (retry_budget_expired): Retry budget expired during downtime
    no answer
    undaunted explain 7f3k/north
---
job 7f3k  item north
  dead letter (retry_budget_expired): Retry budget expired during downtime

  …

  ask stopped (retry_budget_expired)
    at         2023-11-14T22:30:10.000Z
    why        Retry budget expired during downtime (budget 30s); last error: exit status 1: no answer
    refused    retry 1 of 2 (attempt 2 of 3), after 0 retries
    overdue    16m30s: 10s spent plus 16m30s late exceeds the budget of 30s
    expired    2023-11-14T22:14:00.000Z, while no process was running the job

  output:  undaunted logs 7f3k/north
  again:   undaunted dlq redrive 7f3k north

"]]
        .raw()
    );
}
