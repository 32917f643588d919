//! Every law can be broken, and the violation is reported.

use std::time::Duration;

use undaunted_policy::{FailureCause, FailureClass, Pool, PoolLimits, Reason, Timestamp};

use super::{violations_by_record, violations_in_state};
use crate::event::{
    AttemptFailed, AttemptId, AttemptStarted, AttemptSucceeded, Event, ItemEvent, JobEnded, JobEvent,
    JobSubmitted, NewItem, Record, ResultArrived, RetryArithmetic, RetryScheduled, StepEvent, StoredText,
};
use crate::id::{AttemptNumber, CommandId, StartId, StepId};
use crate::job::{ActiveItem, Activity, Job, JobStage, RetryQueue};

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
            warning: None,
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
    Event::Item(ItemEvent::AttemptStarted(AttemptStarted { of, start, pass: None, began: None }))
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
        limit: None,
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
        arithmetic: RetryArithmetic {
            retry: 1,
            allowed: Some(1),
            spent_after: SECOND,
            budget: Some(SECOND),
            expires: Some(at(11)),
            deadline: Some(at(11)),
            ..RetryArithmetic::default()
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

/// The first item of a job, which is active.
fn active(job: &mut Job) -> &mut ActiveItem {
    job.steps[0].items.active_mut(0).expect("it is active")
}

fn step_started(step: u32) -> Event {
    Event::Step(StepEvent::Started { step: StepId(step), start: None })
}

fn retry() -> Event {
    Event::Item(ItemEvent::RetryScheduled(Box::new(retrying(of(0, 0, 1)))))
}

#[test]
fn a_record_that_starts_what_it_may_not_breaks_a_law() {
    let staged = |stage| Job { stage, ..running() };
    let start = |item, command, attempt, number| started(of(item, command, attempt), StartId(number));
    let (ended, stopping) = (JobStage::Completed, JobStage::Stopping(Reason::Cancelled));
    for (law, job, event) in vec![
        ("a job that has ended does not change", staged(ended), start(0, 0, 1, 1)),
        ("a job that has ended does not change", staged(ended), Event::Job(JobEvent::Suspended)),
        ("nothing starts in a job that does not run", staged(stopping), start(1, 0, 1, 2)),
        ("nothing starts in a job that does not run", staged(stopping), step_started(1)),
        ("nothing starts in a job that does not run", staged(stopping), retry()),
        ("nothing starts in a job that does not run", staged(JobStage::Suspended), start(1, 0, 1, 2)),
        ("a step starts once, or reads its input again", job(), step_started(0)),
        ("a step starts after the steps that it needs", job(), step_started(1)),
        ("an item has at most one running attempt", running(), start(0, 0, 2, 2)),
        ("no retry starts before it is due", waiting(), start(0, 0, 2, 2)),
        ("attempts are numbered without gaps", job(), start(0, 0, 2, 1)),
        ("attempts are numbered without gaps", waiting(), start(0, 0, 1, 2)),
        ("attempts are numbered without gaps", waiting(), start(0, 0, 3, 2)),
        ("no command has more attempts than its bound", waiting(), start(0, 0, 3, 2)),
        ("no command has more attempts than its bound", job(), start(0, 1, 2, 2)),
        ("commands run in order", job(), start(0, 1, 1, 1)),
        ("commands run in order", waiting(), start(0, 1, 2, 2)),
        ("start numbers are unique", running(), start(1, 0, 1, 1)),
    ] {
        breaks(&job, event, law);
    }
}

#[test]
fn a_record_that_ends_what_does_not_run_or_what_still_runs_breaks_a_law() {
    let law = "only a running attempt can end";
    breaks(&job(), failed(of(0, 0, 1)), law);
    breaks(&waiting(), succeeded(of(0, 0, 1)), law);
    breaks(&running(), failed(of(0, 0, 2)), law);
    breaks(&running(), succeeded(of(0, 1, 1)), law);

    let arrived = ResultArrived { of: of(0, 0, 1), output: Some(String::new()), error: None };
    let arrived = Event::Item(ItemEvent::ResultArrived(Box::new(arrived)));
    breaks(&running(), arrived, "a result that overtakes a retry is for an item that waits");

    let done = Event::Item(ItemEvent::Succeeded { step: StepId(0), index: 0 });
    let skipped = Event::Item(ItemEvent::Skipped { step: StepId(0), index: 0, reason: Reason::Cancelled });
    let error = StoredText::Itself(String::new());
    let dead = ItemEvent::DeadLettered { of: of(0, 0, 1), reason: Reason::Attempts, error };
    let mut settled = running();
    apply(&mut settled, succeeded(of(0, 0, 1)));
    apply(&mut settled, done.clone());
    for event in [done, skipped, Event::Item(dead)] {
        breaks(&settled, event.clone(), "an item is settled once");
        breaks(&running(), event, "an item is settled after its attempt has ended");
    }

    let ended = Box::<JobEnded>::default;
    for event in [
        JobEvent::Completed(ended()),
        JobEvent::Partial(ended()),
        JobEvent::Failed(ended()),
        JobEvent::Cancelled(ended()),
    ] {
        breaks(&running(), Event::Job(event), "a job ends when nothing runs");
    }
    let law = "a job is suspended when no attempt needs its owner";
    breaks(&running(), Event::Job(JobEvent::Suspended), law);
}

#[test]
fn a_retry_with_wrong_arithmetic_breaks_a_law() {
    let check = |change: fn(&mut RetryScheduled), law| {
        let mut retrying = retrying(of(0, 0, 1));
        change(&mut retrying);
        breaks(&running(), Event::Item(ItemEvent::RetryScheduled(Box::new(retrying))), law);
    };
    check(|it| it.arithmetic.budget = Some(SECOND / 2), "delays stay within the delay budget");
    check(|it| it.due = at(12), "a retry falls due after its delay");
    check(|it| it.arithmetic.spent_after = SECOND * 2, "spent delays add up exactly");
    check(|it| it.arithmetic.spent_before = SECOND, "spent delays add up exactly");
    check(|it| it.arithmetic.deadline = Some(at(10)), "no retry falls due after its deadline");
}

#[test]
fn a_state_that_contradicts_itself_breaks_a_law() {
    let check = |law, mut job: Job, change: fn(&mut Job)| {
        change(&mut job);
        let broken = violations_in_state(&job);
        assert!(broken.iter().any(|it| it.law == law), "{law}: {broken:?}");
    };
    let law = "the starts are those of the running attempts";
    check(law, running(), |job| job.starts.running.clear());
    check(law, waiting(), |job| {
        job.starts.running.insert(StartId(1), StepId(0).item(0));
    });
    check("a pool is never overdrawn", waiting(), |job| {
        job.pool = Some(Pool { limits: PoolLimits { total: 3, per_item: 2 }, consumed: 4 });
    });
    check("no item uses more than its share of the pool", waiting(), |job| active(job).charged = 3);
    check("items start in input order", running(), |job| job.steps[0].cursor = 2);
    check("items start in input order", running(), |job| job.steps[0].cursor = 0);
    check("a start number belongs to one item", running(), |job| {
        job.apply(&record(started(of(1, 0, 1), StartId(1))));
    });
    let law = "every waiting item is in the retry queue";
    check(law, waiting(), |job| job.steps[0].waiting = RetryQueue::default());
    check(law, waiting(), |job| active(job).activity = Activity::Waiting(at(12)));
    let law = "the counts of a step match its items";
    check(law, running(), |job| job.steps[0].succeeded += 1);
    check(law, running(), |job| job.steps[0].dead += 1);
    check(law, running(), |job| job.steps[0].skipped += 1);
    check(law, running(), |job| job.steps[0].running += 1);
    check(law, running(), |job| job.steps[0].waiting.insert(at(1), 3));
    check("no step runs more items at once than it may", running(), |job| {
        apply(job, started(of(1, 0, 1), StartId(2)));
        job.apply(&record(started(of(2, 0, 1), StartId(3))));
    });
}
