//! Laws about what a record may change.

use undaunted_policy::Timestamp;

use super::state::LawViolation;
use crate::event::{
    AttemptId, AttemptStarted, Event, ItemEvent, JobEvent, Record, RetryScheduled, StepEvent,
};
use crate::id::{AttemptNumber, ItemId, StartId};
use crate::job::{Activity, ItemState, Job, JobStage, StepStage};
use crate::workflow::Command;

/// A law, and whether it holds.
type LawResult = (&'static str, bool);

/// The laws that a record breaks, given the job before it. Bounds are the current ones: an earlier retry
/// may exceed them after `resume --update`.
pub fn violations_by_record(job: &Job, record: &Record) -> Vec<LawViolation> {
    // An operator may redrive or drop the dead letters of a job that has ended, and results may come late.
    let is_for_ended_jobs = match &record.event {
        Event::Job(JobEvent::Redriven { .. } | JobEvent::PoolToppedUp { .. })
        | Event::Item(ItemEvent::Dropped { .. } | ItemEvent::LateResult(_)) => true,
        // What a late result changes.
        Event::Step(StepEvent::AttributeSet { .. }) => job.counts_late_results(),
        Event::Job(JobEvent::Completed(_)) => job.stage == JobStage::Partial && job.counts_late_results(),
        Event::Job(_) | Event::Step(_) | Event::Item(_) | Event::Breaker(_) => false,
    };
    let may_change = !job.stage.has_ended() || is_for_ended_jobs;
    let mut laws = vec![("a job that has ended does not change", may_change)];
    laws.extend(match &record.event {
        Event::Job(event) => laws_of_job(job, event),
        Event::Step(event) => laws_of_step(job, event),
        Event::Item(event) => laws_of_item(job, event, record.at),
        Event::Breaker(_) => Vec::new(),
    });
    let broken = laws.into_iter().filter(|(_, holds)| !holds);
    broken.map(|(law, _)| LawViolation { law, what: format!("{record:?}") }).collect()
}

fn laws_of_job(job: &Job, event: &JobEvent) -> Vec<LawResult> {
    if event.ended().is_some() {
        return vec![("a job ends when nothing runs", !job.has_running())];
    }
    if *event == JobEvent::Suspended {
        return vec![("a job is suspended when no attempt needs its owner", !job.has_running_here())];
    }
    // A pause may be recorded while no engine runs the job, and an update before it has asked its keeper.
    let withdrawn = !matches!(event, JobEvent::Stopping { .. }) || job.starts.reserved.is_empty();
    vec![("reserved starts are withdrawn before the job starts nothing more", withdrawn)]
}

fn laws_of_step(job: &Job, event: &StepEvent) -> Vec<LawResult> {
    let StepEvent::Started { step, .. } = event else { return Vec::new() };
    let stage = job.step(*step).map(|state| state.stage);
    let may_start = matches!(stage, Some(StepStage::Waiting | StepStage::Reading(Some(_))));
    vec![
        starts_in_running_job(job),
        ("a step starts once, or reads its input again", may_start),
        ("a step starts after the steps that it needs", job.may_begin(*step)),
    ]
}

fn laws_of_item(job: &Job, event: &ItemEvent, now: Timestamp) -> Vec<LawResult> {
    const ENDS: &str = "only a running attempt can end";
    match event {
        ItemEvent::AttemptStarted(started) => laws_of_start(job, started, now),
        ItemEvent::AttemptSucceeded(done) => vec![(ENDS, is_running(job, done.of))],
        ItemEvent::AttemptFailed(done) => vec![(ENDS, is_running(job, done.of))],
        ItemEvent::RetryScheduled(retrying) => laws_of_retry(job, retrying, now),
        ItemEvent::Succeeded { .. } | ItemEvent::Skipped { .. } | ItemEvent::DeadLettered { .. } => {
            laws_of_settling(job, event.item())
        }
        ItemEvent::ResultArrived(arrived) => {
            let active = job.active(arrived.of.item());
            let waits = active.is_some_and(|it| matches!(it.activity, Activity::Waiting(_) | Activity::Held));
            vec![("a result that overtakes a retry is for an item that waits", waits)]
        }
        ItemEvent::AttemptAccepted { .. }
        | ItemEvent::CommandStopped(_)
        | ItemEvent::CommandRepeated { .. }
        | ItemEvent::CommandRecovered { .. }
        | ItemEvent::Redriven { .. }
        | ItemEvent::Dropped { .. }
        | ItemEvent::Held(_)
        | ItemEvent::Released(_)
        | ItemEvent::LateResult(_) => Vec::new(),
        ItemEvent::StartReserved(reserved) => {
            let may = job.reservable(now).first() == Some(&reserved.of.item());
            let fresh = reserved.start >= job.starts.next;
            vec![("only the next first attempt is reserved", may), ("start numbers are unique", fresh)]
        }
        ItemEvent::ReservationWithdrawn(withdrawn) => {
            vec![("only a reserved start is withdrawn", is_reserved(job, withdrawn.of, withdrawn.start))]
        }
    }
}

fn laws_of_start(job: &Job, started: &AttemptStarted, now: Timestamp) -> Vec<LawResult> {
    let of = started.of;
    let active = job.active(of.item());
    let activity = active.map(|active| active.activity);
    let due = match activity {
        Some(Activity::Waiting(due)) => due,
        Some(Activity::Running(_) | Activity::Held | Activity::Undecided) | None => Timestamp::ZERO,
    };
    let next = active.map_or(0, |active| active.attempts).saturating_add(1);
    // Earlier releases numbered the attempts of a handler from 1 in each of its rounds.
    let begins_round = of.attempt.0 == 1 && job.plan().handled_by(of.command).is_some();
    let within = most_attempts(job, of).is_none_or(|most| u64::from(of.attempt.0) <= most);
    let command = active.map(|active| active.command).or_else(|| job.plan().first(of.step));
    let item_is_reserved = job.starts.reserved.values().any(|it| it.item == of.item());
    let is_reserved = is_reserved(job, of, started.start);
    let fresh = started.start >= job.starts.next;
    let has_breaker = job.plan().command(of.command).is_some_and(|command| command.breaker.is_some());
    vec![
        starts_in_running_job(job),
        ("an item has at most one running attempt", !matches!(activity, Some(Activity::Running(_)))),
        ("no retry starts before it is due", due <= now),
        ("attempts are numbered without gaps", begins_round || of.attempt == AttemptNumber(next)),
        ("no command has more attempts than its bound", within),
        ("commands run in order", command == Some(of.command)),
        ("start numbers are unique", fresh || is_reserved),
        ("a reserved start begins once, and in its place no other", item_is_reserved == is_reserved),
        ("a reserved start says when it began", is_reserved == started.began.is_some()),
        (
            "an attempt has a pass if its command has a breaker",
            is_reserved || has_breaker == started.pass.is_some(),
        ),
    ]
}

fn is_reserved(job: &Job, of: AttemptId, start: StartId) -> bool {
    of.attempt == AttemptNumber(1) && job.starts.reserved.get(&start).is_some_and(|it| it.item == of.item())
}

fn laws_of_retry(job: &Job, retrying: &RetryScheduled, now: Timestamp) -> Vec<LawResult> {
    let sum = &retrying.arithmetic;
    let within = sum.budget.is_none_or(|budget| sum.spent_after <= budget);
    let spent = job.active(retrying.of.item()).map(|it| it.progress().spent);
    let added = sum.spent_before.saturating_add(retrying.delay) == sum.spent_after;
    let in_time = sum.deadline.is_none_or(|deadline| retrying.due <= deadline);
    vec![
        starts_in_running_job(job),
        ("delays stay within the delay budget", within),
        ("a retry falls due after its delay", retrying.due == now.after(retrying.delay)),
        ("spent delays add up exactly", spent == Some(sum.spent_before) && added),
        ("no retry falls due after its deadline", in_time),
    ]
}

fn laws_of_settling(job: &Job, item: ItemId) -> Vec<LawResult> {
    let settled = matches!(job.item(item), Some(ItemState::Settled(_)));
    let running = job.active(item).is_some_and(|active| matches!(active.activity, Activity::Running(_)));
    vec![("an item is settled once", !settled), ("an item is settled after its attempt has ended", !running)]
}

fn starts_in_running_job(job: &Job) -> LawResult {
    ("nothing starts in a job that does not run", job.stage == JobStage::Running)
}

fn is_running(job: &Job, of: AttemptId) -> bool {
    job.active(of.item()).is_some_and(|active| {
        matches!(active.activity, Activity::Running(_))
            && active.command == of.command
            && AttemptNumber(active.attempts) == of.attempt
    })
}

/// N retries are N + 1 attempts, and one more for each round of the handler. A handler has its own bound in
/// each of its rounds.
fn most_attempts(job: &Job, of: AttemptId) -> Option<u64> {
    let rounds = |command: &Command| {
        command.on_failure.as_deref().map_or(0, |handler| u64::from(handler.max_attempts))
    };
    let command = job.plan().command(of.command)?;
    let bound = command.retry.policy.bound().executions()?;
    let handled = job.plan().handled_by(of.command).and_then(|parent| job.plan().command(parent));
    Some(match handled {
        Some(parent) => bound.saturating_mul(rounds(parent).max(1)),
        None => bound.saturating_add(rounds(command)),
    })
}
