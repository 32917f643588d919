//! Laws about what may happen next.

use undaunted_policy::Timestamp;

use super::violation::{Claims, LawViolation};
use crate::event::{
    AttemptId, AttemptStarted, Event, ItemEvent, JobEvent, Record, RetryScheduled, StepEvent,
};
use crate::id::{AttemptNumber, ItemId};
use crate::job::{Activity, ItemState, Job, JobStage, StepStage};

/// The laws that a record breaks, given the job before it. Bounds are the current ones: an earlier retry
/// may exceed them after `resume --update`.
pub fn violations_by_record(job: &Job, record: &Record) -> Vec<LawViolation> {
    let mut claims = Claims::default();
    let mut claim = |law, holds| claims.claim(law, holds, || format!("{record:?}"));
    // Dead letters can be redriven or dropped after the job has ended.
    let again = matches!(
        record.event,
        Event::Job(JobEvent::Redriven { .. } | JobEvent::PoolToppedUp { .. })
            | Event::Item(ItemEvent::Dropped { .. })
    );
    let ended = job.stage.has_ended() && !again;
    claim("nothing happens to a job that has ended", !ended);
    match &record.event {
        Event::Job(event) => job_lawfully(job, event, &mut claim),
        Event::Step(event) => step_lawfully(job, event, &mut claim),
        Event::Item(event) => item_lawfully(job, event, record.at, &mut claim),
        Event::Breaker(_) => {}
    }
    claims.broken
}

fn job_lawfully(job: &Job, event: &JobEvent, claim: &mut impl FnMut(&'static str, bool)) {
    match event {
        JobEvent::Completed(_) | JobEvent::Partial(_) | JobEvent::Failed(_) | JobEvent::Cancelled(_) => {
            claim("a job ends when nothing runs", !job.has_running());
        }
        JobEvent::Suspended => {
            let quiet = !job.has_running_here();
            claim("a job is left when nothing runs here", quiet);
        }
        JobEvent::Submitted(_)
        | JobEvent::Resumed(_)
        | JobEvent::TextKept { .. }
        | JobEvent::Stopping { .. }
        | JobEvent::PolicyChanged { .. }
        | JobEvent::Redriven { .. }
        | JobEvent::Paused
        | JobEvent::Unpaused { .. }
        | JobEvent::StateImported { .. }
        | JobEvent::PoolToppedUp { .. } => {}
    }
}

fn step_lawfully(job: &Job, event: &StepEvent, claim: &mut impl FnMut(&'static str, bool)) {
    match event {
        StepEvent::Started { step, .. } => {
            claim("nothing starts in a job that stops", runs(job));
            let stage = job.step(*step).map(|state| state.stage);
            let first = stage == Some(StepStage::Waiting);
            let again = matches!(stage, Some(StepStage::Reading(Some(_))));
            claim("a step begins once, or reads its items again", first || again);
            claim("a step waits for those it needs", job.may_begin(*step));
        }
        StepEvent::ItemsRead { .. }
        | StepEvent::InputFailed { .. }
        | StepEvent::Completed { .. }
        | StepEvent::Failed { .. }
        | StepEvent::CompletionReached(_)
        | StepEvent::Skipped { .. }
        | StepEvent::Unreachable { .. }
        | StepEvent::AttributeSet { .. } => {}
    }
}

fn item_lawfully(job: &Job, event: &ItemEvent, now: Timestamp, claim: &mut impl FnMut(&'static str, bool)) {
    match event {
        ItemEvent::AttemptStarted(started) => started_lawfully(job, started, now, claim),
        ItemEvent::AttemptSucceeded(done) => {
            claim("only what runs can end", is_running(job, done.of));
        }
        ItemEvent::AttemptFailed(done) => {
            claim("only what runs can end", is_running(job, done.of));
        }
        ItemEvent::RetryScheduled(retrying) => retried_lawfully(job, retrying, now, claim),
        ItemEvent::Succeeded { .. } | ItemEvent::Skipped { .. } | ItemEvent::DeadLettered { .. } => {
            settled_lawfully(job, event.item(), claim);
        }
        ItemEvent::AttemptAccepted { .. }
        | ItemEvent::CommandStopped(_)
        | ItemEvent::CommandRepeated { .. }
        | ItemEvent::CommandRecovered { .. }
        | ItemEvent::Redriven { .. }
        | ItemEvent::Dropped { .. }
        | ItemEvent::Held(_)
        | ItemEvent::Released(_)
        | ItemEvent::LateResult(_) => {}
    }
}

fn started_lawfully(
    job: &Job,
    started: &AttemptStarted,
    now: Timestamp,
    claim: &mut impl FnMut(&'static str, bool),
) {
    let of = started.of;
    claim("nothing starts in a job that stops", runs(job));
    let active = job.active(of.item());
    let doing = active.map(|active| active.activity);
    let running = matches!(doing, Some(Activity::Running(_)));
    claim("one attempt of a command lives at a time", !running);
    let due = match doing {
        Some(Activity::Waiting(due)) => due,
        Some(Activity::Running(_) | Activity::Held | Activity::Undecided) | None => Timestamp::ZERO,
    };
    claim("no retry starts before it is due", due <= now);
    let made = active.map_or(0, |active| active.attempts);
    let next = made.saturating_add(1);
    claim("attempts are numbered one by one", of.attempt == AttemptNumber(next));
    let most = most_attempts(job, of);
    let within = most.is_none_or(|most| u64::from(of.attempt.0) <= most);
    claim("attempts stay within their bound", within);
    let at = active.map(|active| active.command);
    let turn = at.or_else(|| job.plan().first(of.step)) == Some(of.command);
    claim("commands run in their order", turn);
    let fresh = started.start >= job.starts.next;
    claim("no two starts have the same number", fresh);
    let command = job.plan().command(of.command);
    let asks = command.is_some_and(|command| command.breaker.is_some());
    claim("what has a breaker starts when that lets it", asks == started.pass.is_some());
}

fn retried_lawfully(
    job: &Job,
    retrying: &RetryScheduled,
    now: Timestamp,
    claim: &mut impl FnMut(&'static str, bool),
) {
    claim("nothing starts in a job that stops", runs(job));
    let sum = &retrying.sum;
    let within = sum.budget.is_none_or(|budget| sum.spent_after <= budget);
    claim("delays stay within their budget", within);
    let waits = retrying.due == now.after(retrying.delay);
    claim("a retry falls due after its delay", waits);
    let of = retrying.of;
    let spent = job.active(of.item()).map(|it| it.progress().spent);
    let added = sum.spent_before.saturating_add(retrying.delay) == sum.spent_after;
    let exact = spent == Some(sum.spent_before) && added;
    claim("what was spent is added up exactly", exact);
    let in_time = sum.deadline.is_none_or(|deadline| retrying.due <= deadline);
    claim("no retry falls due after its deadline", in_time);
}

fn settled_lawfully(job: &Job, item: ItemId, claim: &mut impl FnMut(&'static str, bool)) {
    let state = job.item(item);
    let settled = matches!(state, Some(ItemState::Settled(_)));
    claim("an item ends once", !settled);
    let doing = job.active(item).map(|active| active.activity);
    let running = matches!(doing, Some(Activity::Running(_)));
    claim("an item ends after its attempt", !running);
}

fn runs(job: &Job) -> bool {
    job.stage == JobStage::Running
}

fn is_running(job: &Job, of: AttemptId) -> bool {
    job.active(of.item()).is_some_and(|active| {
        matches!(active.activity, Activity::Running(_))
            && active.command == of.command
            && AttemptNumber(active.attempts) == of.attempt
    })
}

/// N retries are N + 1 attempts, and one more for each round of the handler.
fn most_attempts(job: &Job, of: AttemptId) -> Option<u64> {
    let command = job.plan().command(of.command)?;
    let bound = command.retry.policy.bound().executions()?;
    let handler = command.on_failure.as_deref();
    let rounds = handler.map_or(0, |handler| u64::from(handler.max_attempts));
    Some(bound.saturating_add(rounds))
}
