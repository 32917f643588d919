//! What `show` and `explain` print of a job that was interrupted, suspended, cancelled, or late.

use std::collections::BTreeMap;
use std::time::Duration;

use snapbox::{IntoData, assert_data_eq, str};
use undaunted_engine::breaker::{AdmissionControl, BreakerAnswer};
use undaunted_engine::decide::react;
use undaunted_engine::effect::ready;
use undaunted_engine::event::{Event, JobEvent, NewItem, Record};
use undaunted_engine::id::StepId;
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::{Activity, Job};
use undaunted_engine::plan::Plan;
use undaunted_engine::submission::{SubmissionContext, submission};
use undaunted_engine::view::{ItemView, JobExplanation, JobView, Projection, ViewContext};
use undaunted_engine::workflow::{Operator, Source, check};
use undaunted_policy::{FailureCause, Timestamp};

use super::explain;
use super::job::{Paper, show};

const T0: Timestamp = Timestamp::from_millis(1_700_000_000_000);

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

/// A job on a virtual clock, and what its journal says beyond it.
struct Scene {
    job: Job,
    projection: Projection,
    version: u64,
    now: Timestamp,
}

impl Scene {
    /// Of the items `north`, `east` and `south` the first waits until 20 s and the second runs.
    fn new() -> Self {
        let operator = Operator::default();
        let checked = check(&Source::new("w.yaml", MAP), &operator);
        let around = SubmissionContext {
            job: "7f3k".to_owned(),
            file: "/w/w.yaml".to_owned(),
            working_dir: "/w".to_owned(),
            seed: 7,
            operator: &operator,
            variable: &|_| None,
            release: "0.1.0".to_owned(),
            flow: None,
            token_key: None,
        };
        let plan = Plan::new(checked.workflow.expect("a workflow"));
        let submitted = submission(plan, MAP, around).expect("it can be run");
        let record = Record { at: T0, event: Event::Job(JobEvent::Submitted(Box::new(submitted))) };
        let mut scene = Self {
            job: Job::begin(&record).expect("a job"),
            projection: Projection::following_all(),
            version: 1,
            now: T0,
        };
        scene.projection.take(&scene.job, 1, &record);
        scene.tell(&Input::Woke);
        let items = ["north", "east", "south"]
            .map(|name| NewItem { identity: name.to_owned(), input: format!("{name:?}") });
        scene.tell(&Input::ItemsRead { step: StepId(0), items: items.into() });
        scene.start();
        scene.wait(10);
        scene.fail(0, FailureCause::Exit(1), "no answer");
        scene
    }

    fn tell(&mut self, input: &Input) {
        for record in react(&mut self.job, input, self.now).records {
            self.version += 1;
            self.projection.take(&self.job, self.version, &record);
        }
    }

    fn start(&mut self) {
        for item in ready(&self.job, &AdmissionControl::default(), self.now) {
            self.tell(&Input::Start { item, refused: None, gate: BreakerAnswer::NoBreaker });
        }
    }

    fn wait(&mut self, seconds: u64) {
        self.now = self.now.after(Duration::from_secs(seconds));
    }

    fn fail(&mut self, item: u32, cause: FailureCause, error: &str) {
        let active = self.job.active(StepId(0).item(item)).expect("active");
        let Activity::Running(start) = active.activity else { panic!("it runs: {active:?}") };
        self.tell(&Input::Ended(Box::new(AttemptEnd {
            start,
            failure: Some(cause),
            took: Duration::from_millis(1500),
            error: error.to_owned(),
            stderr_end: error.to_owned(),
            ..AttemptEnd::default()
        })));
    }

    /// What is printed of the job and of its first item, while no process runs it.
    fn printed(&self) -> String {
        let now = self.now;
        let context = ViewContext {
            job: &self.job,
            projection: &self.projection,
            breakers: &AdmissionControl::default(),
            owner: None,
            seen: None,
            now,
        };
        let item = StepId(0).item(0);
        let history = &self.projection.items.items[&item];
        let paper = Paper { now, columns: 80, colour: false };
        let mut out = Vec::new();
        let view = JobView::of(&context, &BTreeMap::new());
        show(&mut out, &view, &paper).expect("it is shown");
        out.extend(b"---\n");
        explain::job(&mut out, &JobExplanation::of(&context), now).expect("explained");
        out.extend(b"---\n");
        let view = ItemView::of(&context, item, None, history);
        explain::item(&mut out, &view, now).expect("explained");
        String::from_utf8(out).expect("text")
    }
}

#[test]
fn an_interrupted_job_says_what_its_resume_will_do() {
    let mut scene = Scene::new();
    scene.wait(1000);
    assert_data_eq!(scene.printed(), str![[r"
job 7f3k  nightly
  status     interrupted (run 1)
  submitted  2023-11-14T22:13:20.000Z
  so far     0 of 3 items succeeded; 2 attempts
  map        running, 0 of 3 done, 1 running, 1 waiting
  sum        waiting
    north: attempt 1 of 3 failed (exit status 1: no answer); retry 1 of 2 due now
  deadline   each item has 1m40s from its first start
  go on:  undaunted resume 7f3k
  why:    undaunted explain 7f3k
  all of it:  undaunted events 7f3k
---
job 7f3k  nightly
  interrupted: whoever ran it has died; go on with `undaunted resume 7f3k`
  0 of 3 items succeeded; 2 attempts
  pool           none: only the limits of each command hold
  deadline       each item has 1m40s from its first start

  north: waits for retry 1 of 2 (attempt 2 of 3), due since 2023-11-14T22:13:40.000Z
    no answer
    undaunted explain 7f3k/north
---
job 7f3k  item north
  waits for retry 1 of 2 (attempt 2 of 3), due since 2023-11-14T22:13:40.000Z; nobody runs the job: undaunted resume 7f3k
    deadline   2023-11-14T22:15:00.000Z, 15m10s ago

  ask, attempt 1 of 3: failed after 1.5s
    at         2023-11-14T22:13:20.000Z
    failure    exit status 1: no answer
    rule       none matched; a transient failure is retried
    delay      10s computed, 10s capped, 10s drawn
    so         retry 1 of 2 (attempt 2 of 3) in 10s, due 2023-11-14T22:13:40.000Z
    retries    0 → 1 of 2
    budget     0s → 10s of 30s
    expires    2023-11-14T22:14:00.000Z, if the job is not run until then
    deadline   2023-11-14T22:15:00.000Z, 1m20s after the retry falls due

  when the job is resumed, its retry is refused:
    then retry_budget_expired ends it: Retry budget expired during downtime (budget 30s)
    refused    retry 1 of 2 (attempt 2 of 3); 0 made before it
    overdue    16m30s: 10s spent and 16m30s late is more than the budget of 30s
    expired    2023-11-14T22:14:00.000Z, while nothing ran the job

  output:  undaunted logs 7f3k/north

"]].raw());
}

#[test]
fn the_time_of_items_stands_still_while_their_job_is_suspended() {
    let mut scene = Scene::new();
    scene.fail(1, FailureCause::Timeout, "");
    scene.tell(&Input::Suspend);
    scene.wait(50);
    assert_data_eq!(scene.printed(), str![[r"
job 7f3k  nightly
  status     suspended (run 1)
  submitted  2023-11-14T22:13:20.000Z
  so far     0 of 3 items succeeded; 2 attempts
  map        running, 0 of 3 done, 2 waiting
  sum        waiting
    north: attempt 1 of 3 failed (exit status 1: no answer); retry 1 of 2 due now
    east: attempt 1 of 3 failed (timed out); retry 1 of 2 due now
  deadline   each item has 1m40s from its first start
  go on:  undaunted resume 7f3k
  why:    undaunted explain 7f3k
  all of it:  undaunted events 7f3k
---
job 7f3k  nightly
  suspended in good order; go on with `undaunted resume 7f3k`
  0 of 3 items succeeded; 2 attempts
  pool           none: only the limits of each command hold
  deadline       each item has 1m40s from its first start

  north: waits for retry 1 of 2 (attempt 2 of 3), due since 2023-11-14T22:13:40.000Z
    no answer
    undaunted explain 7f3k/north

  east: waits for retry 1 of 2 (attempt 2 of 3), due since 2023-11-14T22:13:40.000Z
    undaunted explain 7f3k/east
---
job 7f3k  item north
  waits for retry 1 of 2 (attempt 2 of 3), due since 2023-11-14T22:13:40.000Z; nobody runs the job: undaunted resume 7f3k
    deadline   2023-11-14T22:15:50.000Z, in 1m30s

  ask, attempt 1 of 3: failed after 1.5s
    at         2023-11-14T22:13:20.000Z
    failure    exit status 1: no answer
    rule       none matched; a transient failure is retried
    delay      10s computed, 10s capped, 10s drawn
    so         retry 1 of 2 (attempt 2 of 3) in 10s, due 2023-11-14T22:13:40.000Z
    retries    0 → 1 of 2
    budget     0s → 10s of 30s
    expires    2023-11-14T22:14:00.000Z, if the job is not run until then
    deadline   2023-11-14T22:15:00.000Z, 1m20s after the retry falls due

  if it goes on failing as it did, each time at once:
    retry 2 of 2 (attempt 3 of 3) in 10s, 20s of 30s spent
    then attempts ends it: All attempts used (2 retries, 3 attempts)

  output:  undaunted logs 7f3k/north

"]].raw());
}

#[test]
fn nothing_goes_on_in_a_job_that_was_cancelled() {
    let mut scene = Scene::new();
    scene.tell(&Input::Cancel);
    scene.fail(1, FailureCause::Signal(15), "");
    assert_data_eq!(
        scene.printed(),
        str![[r"
job 7f3k  nightly
  status     cancelled (run 1)
  submitted  2023-11-14T22:13:20.000Z
  so far     0 of 3 items succeeded, 2 skipped, 1 never started; 2 attempts; took 10s
  map        cancelled, 0 of 3 done, 2 skipped
  sum        not started
  deadline   each item has 1m40s from its first start
  why:    undaunted explain 7f3k
  all of it:  undaunted events 7f3k
---
job 7f3k  nightly
  cancelled (cancelled): Cancelled
  0 of 3 items succeeded, 2 skipped, 1 never started; 2 attempts; took 10s
  pool           none: only the limits of each command hold
  deadline       each item has 1m40s from its first start
  never started  south (cancelled)
---
job 7f3k  item north
  skipped (cancelled): Cancelled

  ask, attempt 1 of 3: failed after 1.5s
    at         2023-11-14T22:13:20.000Z
    failure    exit status 1: no answer
    rule       none matched; a transient failure is retried
    delay      10s computed, 10s capped, 10s drawn
    so         retry 1 of 2 (attempt 2 of 3) in 10s, due 2023-11-14T22:13:40.000Z
    retries    0 → 1 of 2
    budget     0s → 10s of 30s
    expires    2023-11-14T22:14:00.000Z, if the job is not run until then
    deadline   2023-11-14T22:15:00.000Z, 1m20s after the retry falls due

  output:  undaunted logs 7f3k/north

"]]
        .raw()
    );
}

#[test]
fn a_retry_that_was_refused_after_downtime_says_how_late_it_was() {
    let mut scene = Scene::new();
    scene.wait(1000);
    scene.tell(&Input::Resume { seen: None });
    assert_data_eq!(
        scene.printed(),
        str![[r"
job 7f3k  nightly
  status     interrupted (run 2)
  submitted  2023-11-14T22:13:20.000Z
  so far     0 of 3 items succeeded, 1 dead letter; 2 attempts
  error      Retry budget expired during downtime (budget 30s); last error: exit status 1: no answer
  map        running, 0 of 3 done, 1 running, 1 dead
    dead: north (retry_budget_expired)
  sum        waiting
  deadline   each item has 1m40s from its first start
  go on:  undaunted resume 7f3k
  why:    undaunted explain 7f3k
  all of it:  undaunted events 7f3k
---
job 7f3k  nightly
  interrupted: whoever ran it has died; go on with `undaunted resume 7f3k`
  0 of 3 items succeeded, 1 dead letter; 2 attempts
  first failure  Retry budget expired during downtime (budget 30s); last error: exit status 1: no answer
  pool           none: only the limits of each command hold
  deadline       each item has 1m40s from its first start

  north: a dead letter (retry_budget_expired): Retry budget expired during downtime
    no answer
    undaunted explain 7f3k/north
---
job 7f3k  item north
  a dead letter (retry_budget_expired): Retry budget expired during downtime

  ask, attempt 1 of 3: failed after 1.5s
    at         2023-11-14T22:13:20.000Z
    failure    exit status 1: no answer
    rule       none matched; a transient failure is retried
    delay      10s computed, 10s capped, 10s drawn
    so         retry 1 of 2 (attempt 2 of 3) in 10s, due 2023-11-14T22:13:40.000Z
    retries    0 → 1 of 2
    budget     0s → 10s of 30s
    expires    2023-11-14T22:14:00.000Z, if the job is not run until then
    deadline   2023-11-14T22:15:00.000Z, 1m20s after the retry falls due

  ask is tried no further (retry_budget_expired)
    at         2023-11-14T22:30:10.000Z
    why        Retry budget expired during downtime (budget 30s); last error: exit status 1: no answer
    refused    retry 1 of 2 (attempt 2 of 3); 0 made before it
    overdue    16m30s: 10s spent and 16m30s late is more than the budget of 30s
    expired    2023-11-14T22:14:00.000Z, while nothing ran the job

  output:  undaunted logs 7f3k/north
  again:   undaunted dlq redrive 7f3k north

"]]
        .raw()
    );
}
