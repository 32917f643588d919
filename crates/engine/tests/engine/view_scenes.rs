//! The scenes of `views`: each puts a job into one of the states that it can have.

use undaunted_engine::id::StepId;
use undaunted_engine::input::Input;
use undaunted_policy::{FailureCause, Reason, Timestamp};

use crate::flows::{ONCE, fail, flow};
use crate::scene::{Scene, at};
use crate::view_item_scenes::{again, dead, flows, handled, held, rules};

/// A job at one moment, and who runs it.
pub(crate) struct Shot {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) scene: Scene,
    pub(crate) owner: Option<u32>,
    /// The last sign of life of the process that ran it.
    pub(crate) seen: Option<Timestamp>,
}

/// While a process runs the job.
pub(crate) fn owned(name: &'static str, about: &'static str, scene: Scene) -> Shot {
    Shot { name, about, scene, owner: Some(4711), seen: None }
}

/// While no process runs the job.
pub(crate) fn left(name: &'static str, about: &'static str, scene: Scene) -> Shot {
    Shot { owner: None, ..owned(name, about, scene) }
}

pub(crate) const LIST: &str = "
name: publish
commands:
  - {id: load, shell: load}
  - {id: check, shell: check, retry_config: {attempts: 1, initial_delay: 10s}}
  - {id: publish, shell: publish}
";

/// Two items at a time, with an item deadline, a pool and a tolerance.
pub(crate) const MAP: &str = "
name: nightly
retry_budget: 9
mode: mapreduce
map:
  input: a.json
  max_parallel: 2
  agent_timeout_secs: 100
  error_policy:
    max_failures: 3
    retry_config: {attempts: 2, backoff: fixed, initial_delay: 10s, retry_budget: 30s}
  agent_template: [{id: ask, shell: ask}]
reduce: [{id: sum, shell: sum}]
";

pub(crate) fn scenes() -> Vec<Shot> {
    [unfinished(), downtime(), ended(), cancelled(), rules(), held(), dead(), handled(), flows(), again()]
        .into_iter()
        .flatten()
        .collect()
}

/// After 14 s: `a0` has succeeded, `a1` waits until 20 s, `a2` runs, `a3` is pending.
fn mixed() -> Scene {
    let mut scene = Scene::over(MAP, 4);
    let _ = scene.start();
    scene.at(5);
    let _ = scene.succeed(0);
    scene.at(10);
    let _ = scene.fail_saying(1, FailureCause::Exit(1), "connection refused by host 10.0.0.7");
    let _ = scene.start();
    let _ = scene.succeed(2);
    let _ = scene.start();
    scene.at(14);
    scene
}

/// `a0` and `a1` wait for their retries until 20 s; the process has gone away at 14 s.
fn waiting() -> Scene {
    let mut scene = Scene::over(MAP, 3);
    let _ = scene.start();
    scene.at(10);
    let _ = scene.fail_saying(0, FailureCause::Exit(1), "no answer");
    let _ = scene.fail_saying(1, FailureCause::Timeout, "");
    scene
}

fn unfinished() -> Vec<Shot> {
    let mut stopping = mixed();
    let _ = stopping.tell(&Input::Cancel);
    let mut paused = mixed();
    let _ = paused.tell(&Input::Pause);
    paused.at(50);
    let mut paused_and_left = waiting();
    let _ = paused_and_left.tell(&Input::Pause);
    paused_and_left.at(20);
    let _ = paused_and_left.tell(&Input::Suspend);
    paused_and_left.at(50);
    let mut slots = Scene::over(&MAP.replace("max_parallel: 2", "max_parallel: 1"), 2);
    let _ = slots.start();
    let _ = slots.fail(0, FailureCause::Exit(1));
    let _ = slots.start();
    slots.at(25);
    let mut input = Scene::of(READING);
    input.at(3);
    vec![
        owned("running", "One item of each kind.", mixed()),
        owned("stopping", "Cancelled while items run and wait.", stopping),
        owned("paused", "Paused at 14 s by its operator, now 50 s.", paused),
        left("paused_and_suspended", "Paused at 10 s, suspended at 20 s, now 50 s.", paused_and_left),
        owned("waiting_for_a_slot", "a0 was due at 10 s, a1 has the only slot.", slots),
        owned("reading", "A command gives the items.", input),
        owned("submitted", "Nothing was started yet.", Scene::over(LIST_MAP, 2)),
    ]
}

const READING: &str = "
mode: mapreduce
map: {input: {shell: list}, agent_template: [{shell: ask}]}
";
const LIST_MAP: &str = "
mode: mapreduce
map: {input: a.json, agent_template: [{shell: ask}]}
";

fn downtime() -> Vec<Shot> {
    let mut suspended = waiting();
    let _ = suspended.tell(&Input::Suspend);
    suspended.at(60);
    let mut soon = mixed();
    soon.at(19);
    let mut late = waiting();
    late.at(1000);
    let mut expired = waiting();
    expired.at(1000);
    let _ = expired.crash_and_resume();
    let mut queued = waiting();
    queued.at(1000);
    let mut several = waiting();
    let _ = several.tell(&Input::Suspend);
    several.at(15);
    let _ = several.crash_and_resume();
    several.at(20);
    let _ = several.start();
    several.at(25);
    let _ = several.crash_and_resume();
    vec![
        left("suspended", "Suspended at 10 s, now 60 s.", suspended),
        left("interrupted", "Its process has died; now 19 s.", soon),
        left("interrupted_overdue", "The retries due at 20 s may be 20 s late; now 1000 s.", late),
        Shot {
            seen: Some(at(990)),
            ..left("interrupted_overdue_and_seen", "The same, but its process was seen at 990 s.", queued)
        },
        owned("expired", "interrupted_overdue after its resume: the next item runs.", expired),
        owned("resumed", "Resumed at 15 s after a suspension and at 25 s after a crash.", several),
    ]
}

fn ended() -> Vec<Shot> {
    let mut completed = Scene::over(LIST_MAP, 2);
    let _ = completed.start();
    for item in 0..2 {
        completed.at(4);
        let _ = completed.succeed(item);
        let _ = completed.start();
    }
    let mut failed = Scene::of(LIST);
    let _ = failed.start();
    let _ = failed.succeed(0);
    failed.at(2);
    let _ = failed.start();
    let _ = failed.fail_saying(0, FailureCause::Exit(3), "no such table");
    failed.at(12);
    let _ = failed.start();
    let _ = failed.fail_saying(0, FailureCause::Exit(3), "no such table");
    let mut tolerance = Scene::over(&MAP.replace("max_failures: 3", "max_failures: 1"), 4);
    let _ = tolerance.start();
    tolerance.at(2);
    let _ = tolerance.fail_saying(0, FailureCause::Exit(127), "ask: not found");
    tolerance.at(3);
    let _ = tolerance.succeed(1);
    let mut deadline = Scene::over(&format!("deadline: 30s\n{}", MAP.trim_start()), 3);
    let _ = deadline.start();
    deadline.at(25);
    let _ = deadline.fail(0, FailureCause::Exit(1));
    deadline.at(30);
    let _ = deadline.tell(&Input::Woke);
    let _ = deadline.fail(1, FailureCause::Signal(15));
    let mut input = Scene::of(MAP);
    let _ = input.tell(&Input::InputFailed {
        step: StepId(0),
        reason: Reason::Permanent,
        error: "cannot read a.json: No such file or directory".to_owned(),
        stderr: None,
    });
    let mut setup = Scene::of(&format!("{MAP}setup: [{{id: login, shell: login}}]\n"));
    let _ = setup.start();
    let _ = setup.fail_saying(0, FailureCause::Exit(2), "password expired");
    vec![
        left("completed", "Both items and no more.", completed),
        left("failed_list", "The second of three commands failed.", failed),
        left("failed_by_tolerance", "One failure is too many; a2 and a3 were never started.", tolerance),
        left("failed_by_its_deadline", "30 s were over while a1 ran and a2 was pending.", deadline),
        left("failed_input", "The items cannot be read.", input),
        left("failed_setup", "The setup failed.", setup),
    ]
}

fn cancelled() -> Vec<Shot> {
    let mut busy = mixed();
    let _ = busy.tell(&Input::Cancel);
    let _ = busy.fail(3, FailureCause::Signal(15));
    let mut list = Scene::of(LIST);
    let _ = list.start();
    let _ = list.succeed(0);
    let _ = list.start();
    list.at(3);
    let _ = list.tell(&Input::Cancel);
    let _ = list.fail(0, FailureCause::Signal(15));
    let mut unstarted = Scene::of(MAP);
    unstarted.at(2);
    let _ = unstarted.tell(&Input::Cancel);
    let mut reading = Scene::of(READING);
    reading.at(2);
    let _ = reading.tell(&Input::Cancel);
    let _ = reading.tell(&Input::InputFailed {
        step: StepId(0),
        reason: Reason::Cancelled,
        error: "ended by signal 15 (TERM)".to_owned(),
        stderr: None,
    });
    let mut unread = Scene::of(&format!("{MAP}setup: [{{id: login, shell: login}}]\n"));
    let _ = unread.start();
    let _ = unread.tell(&Input::Cancel);
    let _ = unread.fail(0, FailureCause::Signal(15));
    let mut before = flow(
        "b",
        "",
        &[
            ("a", "x: {role: output}", ONCE),
            ("b", "x: {role: optional}", ONCE),
            ("c", "x: {role: required}", ONCE),
        ],
    );
    let _ = before.start();
    let _ = fail(&mut before, StepId(0).item(0), FailureCause::Status(410));
    let _ = before.start();
    before.at(3);
    let _ = before.tell(&Input::Cancel);
    let _ = fail(&mut before, StepId(1).item(0), FailureCause::Interrupted);
    vec![
        left("cancelled_map", "One item of each kind, then a cancel.", busy),
        left("cancelled_list", "Cancelled while the second command ran.", list),
        left("cancelled_reading", "Cancelled before the items were read.", unstarted),
        left("cancelled_input", "Cancelled while a command gave the items.", reading),
        left("cancelled_setup", "Cancelled while the setup ran.", unread),
        left(
            "cancelled_after_a_failure",
            "Step a of a flow had failed before b was cancelled; c leads to no goal.",
            before,
        ),
    ]
}
