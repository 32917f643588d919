//! The cases of `views`: each is a job in one of its possible states.

use undaunted_engine::id::StepId;
use undaunted_policy::{FailureCause, Reason, Timestamp};

use crate::fixture::{EXIT_1, ONCE, TERM, TestedJob, at, flow, input_failed, item_at};
use crate::view_item_cases::{again, dead, flows, handled, held, rules};

/// A job at one moment, and the process that runs it.
pub(crate) struct ViewCase {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) test: TestedJob,
    pub(crate) owner: Option<u32>,
    /// The last activity of the process that ran it.
    pub(crate) seen: Option<Timestamp>,
}

/// While a process runs the job.
pub(crate) fn owned(name: &'static str, about: &'static str, test: TestedJob) -> ViewCase {
    ViewCase { name, about, test, owner: Some(4711), seen: None }
}

/// While no process runs the job.
pub(crate) fn left(name: &'static str, about: &'static str, test: TestedJob) -> ViewCase {
    ViewCase { owner: None, ..owned(name, about, test) }
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

pub(crate) fn cases() -> Vec<ViewCase> {
    [unfinished(), downtime(), ended(), cancelled(), rules(), held(), dead(), handled(), flows(), again()]
        .into_iter()
        .flatten()
        .collect()
}

/// After 14 s: `a0` has succeeded, `a1` waits until 20 s, `a2` runs, `a3` is pending.
fn mixed() -> TestedJob {
    let mut test = TestedJob::started_over(MAP, 4);
    test.at(5).succeed(0).at(10);
    test.fail_with(1, EXIT_1, "connection refused by host 10.0.0.7").start().succeed(2).start();
    test.at(14);
    test
}

/// `a0` and `a1` wait for their retries until 20 s.
fn waiting() -> TestedJob {
    let mut test = TestedJob::started_over(MAP, 3);
    test.at(10).fail_with(0, EXIT_1, "no answer").fail_with(1, FailureCause::Timeout, "");
    test
}

fn unfinished() -> Vec<ViewCase> {
    let mut stopping = mixed();
    stopping.cancel();
    let mut paused = mixed();
    paused.pause().at(50);
    let mut paused_and_left = waiting();
    paused_and_left.pause().at(20).suspend().at(50);
    let mut slots = TestedJob::started_over(&MAP.replace("max_parallel: 2", "max_parallel: 1"), 2);
    slots.fail(0, EXIT_1).start().at(25);
    let mut input = TestedJob::of(READING);
    input.at(3);
    vec![
        owned("running", "One item of each kind.", mixed()),
        owned("stopping", "Cancelled while items run and wait.", stopping),
        owned("paused", "Paused at 14 s by its operator, now 50 s.", paused),
        left("paused_and_suspended", "Paused at 10 s, suspended at 20 s, now 50 s.", paused_and_left),
        owned("waiting_for_a_slot", "a0 was due at 10 s, a1 has the only slot.", slots),
        owned("reading", "A command gives the items.", input),
        owned("submitted", "Nothing was started yet.", TestedJob::over(LIST_MAP, 2)),
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

fn downtime() -> Vec<ViewCase> {
    let mut suspended = waiting();
    suspended.suspend().at(60);
    let mut soon = mixed();
    soon.at(19);
    let mut late = waiting();
    late.at(1000);
    let mut expired = waiting();
    expired.at(1000).crash_and_resume();
    let mut queued = waiting();
    queued.at(1000);
    let mut several = waiting();
    several.suspend().at(15).crash_and_resume().at(20).start().at(25).crash_and_resume();
    vec![
        left("suspended", "Suspended at 10 s, now 60 s.", suspended),
        left("interrupted", "Its process has died; now 19 s.", soon),
        left("interrupted_overdue", "The retries due at 20 s may be 20 s late; now 1000 s.", late),
        ViewCase {
            seen: Some(at(990)),
            ..left("interrupted_overdue_and_seen", "The same, but its process was seen at 990 s.", queued)
        },
        owned("expired", "interrupted_overdue after its resume: the next item runs.", expired),
        owned("resumed", "Resumed at 15 s after a suspension and at 25 s after a crash.", several),
    ]
}

fn ended() -> Vec<ViewCase> {
    let mut completed = TestedJob::started_over(LIST_MAP, 2);
    for item in 0..2 {
        completed.at(4).succeed(item).start();
    }
    let mut failed = TestedJob::started(LIST);
    failed.succeed(0).at(2).start().fail_with(0, FailureCause::Exit(3), "no such table");
    failed.at(12).start().fail_with(0, FailureCause::Exit(3), "no such table");
    let mut tolerance = TestedJob::started_over(&MAP.replace("max_failures: 3", "max_failures: 1"), 4);
    tolerance.at(2).fail_with(0, FailureCause::Exit(127), "ask: not found").at(3).succeed(1);
    let mut deadline = TestedJob::started_over(&format!("deadline: 30s\n{}", MAP.trim_start()), 3);
    deadline.at(25).fail(0, EXIT_1).at(30).wake().fail(1, TERM);
    let mut input = TestedJob::of(MAP);
    input.feed(&input_failed(Reason::Permanent, "cannot read a.json: No such file or directory"));
    let mut setup = TestedJob::started(&format!("{MAP}setup: [{{id: login, shell: login}}]\n"));
    setup.fail_with(0, FailureCause::Exit(2), "password expired");
    vec![
        left("completed", "Both items and no more.", completed),
        left("failed_list", "The second of three commands failed.", failed),
        left("failed_by_tolerance", "One failure is too many; a2 and a3 were never started.", tolerance),
        left("failed_by_its_deadline", "30 s were over while a1 ran and a2 was pending.", deadline),
        left("failed_input", "The items cannot be read.", input),
        left("failed_setup", "The setup failed.", setup),
    ]
}

fn cancelled() -> Vec<ViewCase> {
    let mut busy = mixed();
    busy.cancel().fail(3, TERM);
    let mut list = TestedJob::started(LIST);
    list.succeed(0).start().at(3).cancel().fail(0, TERM);
    let mut unstarted = TestedJob::of(MAP);
    unstarted.at(2).cancel();
    let mut reading = TestedJob::of(READING);
    reading.at(2).cancel().feed(&input_failed(Reason::Cancelled, "ended by signal 15 (TERM)"));
    let mut unread = TestedJob::started(&format!("{MAP}setup: [{{id: login, shell: login}}]\n"));
    unread.cancel().fail(0, TERM);
    let mut before = flow(
        "b",
        "",
        &[
            ("a", "x: {role: output}", ONCE),
            ("b", "x: {role: optional}", ONCE),
            ("c", "x: {role: required}", ONCE),
        ],
    );
    before.start().fail_item(item_at(0), FailureCause::Status(410)).start().at(3).cancel();
    before.fail_item(StepId(1).item(0), FailureCause::Interrupted);
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
