//! Every law can be broken, and is noticed.

use std::time::Duration;

use undaunted_policy::{FailureCause, FailureClass, Pool, PoolLimits, Reason, Timestamp};

use super::{violations_by_record, violations_in_state};
use crate::event::{
    AttemptFailed, AttemptId, AttemptStarted, AttemptSucceeded, Event, ItemEvent, JobEnded, JobEvent,
    JobSubmitted, NewItem, Record, RetryArithmetic, RetryScheduled, StepEvent,
};
use crate::id::{AttemptNumber, CommandId, StartId, StepId};
use crate::job::{Activity, Job, JobStage};

const SECOND: Duration = Duration::from_secs(1);

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(1_000_000).after(SECOND.saturating_mul(u32::try_from(seconds).unwrap()))
}

/// Four items, two at a time, of two commands with one retry each; a list of one behind them.
fn job() -> Job {
    let text = "
mode: mapreduce
map:
  input: a.json
  agent_template:
    - {shell: a, retry_config: {attempts: 1, retry_budget: 5s}}
    - {shell: b}
reduce: [{shell: r}]
";
    let submitted = JobSubmitted {
        text: text.into(),
        parallel: vec![(StepId(0), 2)],
        pool: Some((3, 2)),
        ..JobSubmitted::default()
    };
    let mut job = Job::begin(&record(Event::Job(JobEvent::Submitted(Box::new(submitted))))).unwrap();
    let item = |name: &str| NewItem { identity: name.to_owned(), input: "null".to_owned() };
    apply(&mut job, Event::Step(StepEvent::Started { step: StepId(0), start: None }));
    apply(
        &mut job,
        Event::Step(StepEvent::ItemsRead {
            step: StepId(0),
            items: ["a", "b", "c", "d"].map(item).to_vec(),
            last: true,
        }),
    );
    job
}

fn record(event: Event) -> Record {
    Record { at: at(10), event }
}

fn apply(job: &mut Job, event: Event) {
    let record = record(event);
    assert_eq!(violations_by_record(job, &record), [], "{record:?}");
    job.apply(&record);
    assert_eq!(violations_in_state(job), [], "{record:?}");
}

fn of(index: u32, command: u32, attempt: u32) -> AttemptId {
    let item = StepId(0).item(index);
    AttemptId::new(item, CommandId(command), AttemptNumber(attempt))
}

fn started(of: AttemptId, start: StartId) -> Event {
    Event::Item(ItemEvent::AttemptStarted(AttemptStarted { of, start, pass: None }))
}

fn failed(of: AttemptId) -> Event {
    Event::Item(ItemEvent::AttemptFailed(Box::new(AttemptFailed {
        of,
        took: SECOND,
        cause: FailureCause::Exit(1),
        class: FailureClass::Transient,
        error: None,
        rule: None,
        output: None,
        stdout: None,
        stderr: None,
    })))
}

fn succeeded(of: AttemptId) -> Event {
    Event::Item(ItemEvent::AttemptSucceeded(Box::new(AttemptSucceeded {
        of,
        took: SECOND,
        next: None,
        output: None,
        stdout: None,
        stderr: None,
        left: None,
    })))
}

fn retrying(of: AttemptId) -> RetryScheduled {
    RetryScheduled {
        of,
        sum: RetryArithmetic {
            retry: 1,
            allowed: Some(1),
            computed: None,
            capped: None,
            drawn: None,
            spent_before: Duration::ZERO,
            spent_after: SECOND,
            budget: Some(SECOND),
            expires: Some(at(11)),
            retry_after: None,
            deadline: Some(at(11)),
            pool: None,
            share: None,
        },
        due: at(11),
        delay: SECOND,
    }
}

/// A job whose first item runs.
fn running() -> Job {
    let mut job = job();
    apply(&mut job, started(of(0, 0, 1), StartId(1)));
    job
}

/// A job whose first item waits until 11 s, one second from now.
fn waiting() -> Job {
    let mut job = running();
    apply(&mut job, failed(of(0, 0, 1)));
    apply(&mut job, Event::Item(ItemEvent::RetryScheduled(Box::new(retrying(of(0, 0, 1))))));
    job
}

fn breaks(job: &Job, event: Event, law: &str) {
    let broken = violations_by_record(job, &record(event));
    assert!(broken.iter().any(|it| it.law == law), "{law}: {broken:?}");
}

fn is_broken(job: &Job, law: &str) {
    let broken = violations_in_state(job);
    assert!(broken.iter().any(|it| it.law == law), "{law}: {broken:?}");
}

#[test]
fn something_that_happens_to_a_job_that_has_ended_is_noticed() {
    let mut job = job();
    job.stage = JobStage::Completed;
    let law = "nothing happens to a job that has ended";
    breaks(&job, Event::Job(JobEvent::Suspended), law);
    breaks(&job, started(of(0, 0, 1), StartId(1)), law);
}

#[test]
fn a_start_in_a_job_that_stops_is_noticed() {
    let law = "nothing starts in a job that stops";
    let mut job = running();
    job.stage = JobStage::Stopping(Reason::Cancelled);
    breaks(&job, started(of(1, 0, 1), StartId(2)), law);
    let step = Event::Step(StepEvent::Started { step: StepId(1), start: None });
    breaks(&job, step, law);
    let retry = Event::Item(ItemEvent::RetryScheduled(Box::new(retrying(of(0, 0, 1)))));
    breaks(&job, retry, law);
    job.stage = JobStage::Suspended;
    breaks(&job, started(of(1, 0, 1), StartId(2)), law);
}

#[test]
fn a_step_that_begins_twice_or_too_early_is_noticed() {
    let begin = |step| Event::Step(StepEvent::Started { step, start: None });
    breaks(&job(), begin(StepId(0)), "a step begins once, or reads its items again");
    breaks(&job(), begin(StepId(1)), "a step waits for those it needs");
}

#[test]
fn a_second_live_attempt_is_noticed() {
    let law = "one attempt of a command lives at a time";
    breaks(&running(), started(of(0, 0, 2), StartId(2)), law);
}

#[test]
fn a_retry_before_its_time_is_noticed() {
    let law = "no retry starts before it is due";
    breaks(&waiting(), started(of(0, 0, 2), StartId(2)), law);
}

#[test]
fn a_number_that_is_left_out_is_noticed() {
    let law = "attempts are numbered one by one";
    breaks(&job(), started(of(0, 0, 2), StartId(1)), law);
    breaks(&waiting(), started(of(0, 0, 1), StartId(2)), law);
    breaks(&waiting(), started(of(0, 0, 3), StartId(2)), law);
}

#[test]
fn an_attempt_too_many_is_noticed() {
    let law = "attempts stay within their bound";
    breaks(&waiting(), started(of(0, 0, 3), StartId(2)), law);
    breaks(&job(), started(of(0, 1, 2), StartId(2)), law);
}

#[test]
fn a_command_out_of_its_turn_is_noticed() {
    let law = "commands run in their order";
    breaks(&job(), started(of(0, 1, 1), StartId(1)), law);
    breaks(&waiting(), started(of(0, 1, 2), StartId(2)), law);
}

#[test]
fn a_number_of_a_start_that_was_used_is_noticed() {
    let law = "no two starts have the same number";
    breaks(&running(), started(of(1, 0, 1), StartId(1)), law);
}

#[test]
fn an_end_of_what_does_not_run_is_noticed() {
    let law = "only what runs can end";
    breaks(&job(), failed(of(0, 0, 1)), law);
    breaks(&waiting(), succeeded(of(0, 0, 1)), law);
    breaks(&running(), failed(of(0, 0, 2)), law);
    breaks(&running(), succeeded(of(0, 1, 1)), law);
}

#[test]
fn a_retry_whose_sum_is_wrong_is_noticed() {
    let check = |change: fn(&mut RetryScheduled), law| {
        let mut retrying = retrying(of(0, 0, 1));
        change(&mut retrying);
        let event = Event::Item(ItemEvent::RetryScheduled(Box::new(retrying)));
        breaks(&running(), event, law);
    };
    check(|it| it.sum.budget = Some(SECOND / 2), "delays stay within their budget");
    check(|it| it.due = at(12), "a retry falls due after its delay");
    let exactly = "what was spent is added up exactly";
    check(|it| it.sum.spent_after = SECOND * 2, exactly);
    check(|it| it.sum.spent_before = SECOND, exactly);
    check(|it| it.sum.deadline = Some(at(10)), "no retry falls due after its deadline");
}

#[test]
fn an_item_that_ends_twice_or_while_it_runs_is_noticed() {
    let done = Event::Item(ItemEvent::Succeeded { step: StepId(0), index: 0 });
    let skipped = Event::Item(ItemEvent::Skipped { step: StepId(0), index: 0, reason: Reason::Cancelled });
    let dead = Event::Item(ItemEvent::DeadLettered {
        of: of(0, 0, 1),
        reason: Reason::Attempts,
        error: crate::event::StoredText::Itself(String::new()),
    });
    let mut settled = running();
    apply(&mut settled, succeeded(of(0, 0, 1)));
    apply(&mut settled, done.clone());
    for event in [done, skipped, dead] {
        breaks(&settled, event.clone(), "an item ends once");
        breaks(&running(), event, "an item ends after its attempt");
    }
}

#[test]
fn a_job_that_ends_while_something_runs_is_noticed() {
    let law = "a job ends when nothing runs";
    let ended = Box::<JobEnded>::default;
    for event in [
        Event::Job(JobEvent::Completed(ended())),
        Event::Job(JobEvent::Partial(ended())),
        Event::Job(JobEvent::Failed(ended())),
        Event::Job(JobEvent::Cancelled(ended())),
    ] {
        breaks(&running(), event, law);
    }
    let law = "a job is left when nothing runs here";
    breaks(&running(), Event::Job(JobEvent::Suspended), law);
}

#[test]
fn an_attempt_nobody_knows_of_is_noticed() {
    let law = "every running attempt is known by its start";
    let mut job = running();
    job.starts.running.clear();
    is_broken(&job, law);
    let mut job = waiting();
    job.starts.running.insert(StartId(1), StepId(0).item(0));
    is_broken(&job, law);
}

#[test]
fn a_pool_that_is_overdrawn_is_noticed() {
    let limits = PoolLimits { total: 3, per_item: 2 };
    let mut job = waiting();
    job.pool = Some(Pool { limits, consumed: 4 });
    is_broken(&job, "a pool is never overdrawn");
    let mut job = waiting();
    active(&mut job).charged = 3;
    is_broken(&job, "no item uses more than its share of the pool");
}

/// The first item of a job, which is active.
fn active(job: &mut Job) -> &mut crate::job::ActiveItem {
    let first = job.steps[0].items.active_mut(0);
    first.expect("it is active")
}

#[test]
fn an_item_that_was_passed_over_is_noticed() {
    let mut job = running();
    job.steps[0].cursor = 2;
    is_broken(&job, "items start in input order");
    job.steps[0].cursor = 0;
    is_broken(&job, "items start in input order");
}

#[test]
fn a_start_of_two_items_is_noticed() {
    let mut job = running();
    job.apply(&record(started(of(1, 0, 1), StartId(1))));
    is_broken(&job, "a start belongs to one item");
}

#[test]
fn a_wait_that_is_not_in_the_queue_is_noticed() {
    let mut job = waiting();
    job.steps[0].waiting = crate::job::RetryQueue::default();
    is_broken(&job, "what waits is in the queue");
    let mut job = waiting();
    active(&mut job).activity = Activity::Waiting(at(12));
    is_broken(&job, "what waits is in the queue");
}

#[test]
fn a_count_that_is_off_is_noticed() {
    let law = "what is counted is there";
    let changes: [fn(&mut crate::job::StepState); 5] = [
        |step| step.succeeded += 1,
        |step| step.dead += 1,
        |step| step.skipped += 1,
        |step| step.running += 1,
        |step| {
            step.waiting.insert(at(1), 3);
        },
    ];
    for change in changes {
        let mut job = running();
        change(&mut job.steps[0]);
        is_broken(&job, law);
    }
}

#[test]
fn one_that_runs_without_a_slot_is_noticed() {
    let mut job = running();
    apply(&mut job, started(of(1, 0, 1), StartId(2)));
    job.apply(&record(started(of(2, 0, 1), StartId(3))));
    is_broken(&job, "no more run than may");
}
