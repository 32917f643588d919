//! The laws about what may happen next.

use undaunted_policy::Timestamp;

use super::violation::{Claims, Violation};
use crate::event::{Event, Record, Retrying, Started, Subject};
use crate::job::{Doing, Item, Job, Stage, StepStage};

/// The laws that a record breaks, given the job as it was before it. Bounds are those that hold now:
/// after `resume --update` a retry that was scheduled before may be more than they allow.
#[must_use]
pub fn broken_by(job: &Job, record: &Record) -> Vec<Violation> {
    let mut claims = Claims::default();
    let mut claim = |law, holds| claims.claim(law, holds, || format!("{record:?}"));
    // Dead letters can be gone on with, or given up, for as long as there are any.
    let again = matches!(
        record.event,
        Event::JobRedriven { .. } | Event::ItemDropped { .. } | Event::PoolToppedUp { .. }
    );
    let ended = job.stage.has_ended() && !again;
    claim("nothing happens to a job that has ended", !ended);
    match &record.event {
        Event::AttemptStarted(started) => started_lawfully(job, started, record.at, &mut claim),
        Event::StepStarted { step, .. } => {
            claim("nothing starts in a job that stops", runs(job));
            let stage = job.step(*step).map(|state| state.stage);
            let first = stage == Some(StepStage::Waiting);
            let again = matches!(stage, Some(StepStage::Reading(Some(_))));
            claim(
                "a step begins once, or reads its items again",
                first || again,
            );
            claim("a step waits for those it needs", job.may_begin(*step));
        }
        Event::AttemptSucceeded(done) => {
            claim("only what runs can end", is_running(job, done.subject));
        }
        Event::AttemptFailed(done) => {
            claim("only what runs can end", is_running(job, done.subject));
        }
        Event::RetryScheduled(retrying) => retried_lawfully(job, retrying, record.at, &mut claim),
        Event::ItemSucceeded { step, item } | Event::ItemSkipped { step, item, .. } => {
            settled_lawfully(job, *step, *item, &mut claim);
        }
        Event::ItemDeadLettered { subject, .. } => {
            settled_lawfully(job, subject.step, subject.item, &mut claim);
        }
        Event::JobCompleted(_)
        | Event::JobPartial(_)
        | Event::JobFailed(_)
        | Event::JobCancelled(_) => {
            let quiet = !job.has_running();
            claim("a job ends when nothing runs", quiet);
        }
        Event::JobSuspended => {
            let quiet = !job.has_running_here();
            claim("a job is left when nothing runs here", quiet);
        }
        _ => {}
    }
    claims.broken
}

fn started_lawfully(
    job: &Job,
    started: &Started,
    now: Timestamp,
    claim: &mut impl FnMut(&'static str, bool),
) {
    let of = started.subject;
    claim("nothing starts in a job that stops", runs(job));
    let active = job.active(of.step, of.item);
    let doing = active.map(|active| active.doing);
    let running = matches!(doing, Some(Doing::Running(_)));
    claim("one attempt of a command lives at a time", !running);
    let due = match doing {
        Some(Doing::Waiting(due)) => due,
        _ => Timestamp::ZERO,
    };
    claim("no retry starts before it is due", due <= now);
    let made = active.map_or(0, |active| active.attempts);
    let next = made.saturating_add(1);
    claim("attempts are numbered one by one", of.attempt == next);
    let most = most_attempts(job, of);
    let within = most.is_none_or(|most| u64::from(of.attempt) <= most);
    claim("attempts stay within their bound", within);
    let at = active.map(|active| active.command);
    let turn = at.or_else(|| job.plan().first(of.step)) == Some(of.command);
    claim("commands run in their order", turn);
    let fresh = started.start >= job.next_start;
    claim("no two starts have the same number", fresh);
    let command = job.plan().command(of.command);
    let asks = command.is_some_and(|command| command.breaker.is_some());
    claim(
        "what has a breaker starts when that lets it",
        asks == started.pass.is_some(),
    );
}

fn retried_lawfully(
    job: &Job,
    retrying: &Retrying,
    now: Timestamp,
    claim: &mut impl FnMut(&'static str, bool),
) {
    claim("nothing starts in a job that stops", runs(job));
    let sum = &retrying.sum;
    let within = sum.budget.is_none_or(|budget| sum.spent_after <= budget);
    claim("delays stay within their budget", within);
    let waits = retrying.due == now.after(retrying.delay);
    claim("a retry falls due after its delay", waits);
    let of = retrying.subject;
    let spent = job.active(of.step, of.item).map(|it| it.progress().spent);
    let added = sum.spent_before.saturating_add(retrying.delay) == sum.spent_after;
    let exact = spent == Some(sum.spent_before) && added;
    claim("what was spent is added up exactly", exact);
    let in_time = sum.deadline.is_none_or(|deadline| retrying.due <= deadline);
    claim("no retry falls due after its deadline", in_time);
}

fn settled_lawfully(job: &Job, step: u32, item: u32, claim: &mut impl FnMut(&'static str, bool)) {
    let state = job.item(step, item);
    let settled = matches!(state, Some(Item::Settled(_)));
    claim("an item ends once", !settled);
    let doing = job.active(step, item).map(|active| active.doing);
    let running = matches!(doing, Some(Doing::Running(_)));
    claim("an item ends after its attempt", !running);
}

fn runs(job: &Job) -> bool {
    job.stage == Stage::Running
}

fn is_running(job: &Job, of: Subject) -> bool {
    job.active(of.step, of.item).is_some_and(|active| {
        matches!(active.doing, Doing::Running(_))
            && active.command == of.command
            && active.attempts == of.attempt
    })
}

/// N retries are N + 1 attempts, and one more for each round of the handler.
fn most_attempts(job: &Job, of: Subject) -> Option<u64> {
    let command = job.plan().command(of.command)?;
    let bound = command.retry.policy.bound().executions()?;
    let handler = command.on_failure.as_deref();
    let rounds = handler.map_or(0, |handler| u64::from(handler.max_attempts));
    Some(bound.saturating_add(rounds))
}
