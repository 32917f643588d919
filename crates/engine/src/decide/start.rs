//! An item that is ready starts its attempt, unless something forbids it.

use undaunted_policy::{Reason, Then, Timestamp};

use super::facts::Facts;
use super::fail::{Stop, stop_unless_repeated};
use super::hold::{Passage, pass};
use super::words::with_last;
use crate::breaker::Gate;
use crate::event::{Event, Started, Subject};
use crate::job::{Active, Doing, Item, Job, Stage, StepState};

pub(super) fn start(
    facts: &mut Facts<'_>,
    (step, item): (u32, u32),
    refused: Option<&str>,
    gate: &Gate,
) {
    let job = facts.job;
    if job.stage != Stage::Running || job.paused.is_some() || !has_room(job, step, item) {
        return;
    }
    if job.deadline().is_some_and(|end| end < facts.now) {
        // Nobody has said yet that the time is up.
        return facts.push(Event::JobStopping {
            reason: Reason::Deadline,
        });
    }
    let fresh;
    let active = match job.item(step, item) {
        Some(Item::Pending) if is_next(job, step, item) => {
            let Some(first) = job.plan().first(step) else {
                return;
            };
            fresh = Active::new(first, Timestamp::ZERO);
            &fresh
        }
        Some(Item::Active(active)) if active.is_ready(facts.now) => active,
        Some(Item::Active(active)) if active.doing == Doing::Held => active,
        _ => return,
    };
    let of = Subject {
        step,
        item,
        command: active.command,
        attempt: active.attempts,
    };
    if let Some(why) = forbidden(facts, step, active, refused) {
        return stop_unless_repeated(facts, of, active, &why);
    }
    let pass = match pass(facts, of, active, gate) {
        Passage::Free(pass) => pass,
        Passage::Held => return,
        Passage::Refused(why) => return stop_unless_repeated(facts, of, active, &why),
    };
    facts.push(Event::AttemptStarted(Started {
        subject: Subject {
            attempt: active.attempts.saturating_add(1),
            ..of
        },
        start: job.next_start,
        pass,
    }));
}

fn has_room(job: &Job, step: u32, item: u32) -> bool {
    let mut busy = job.busy_steps().filter(|(number, _)| *number == step);
    let room = busy.any(|(_, state)| state.running < job.parallel(step));
    room && job.ending(step, item).is_none()
}

/// Items start in input order: one that is passed over would never be started.
fn is_next(job: &Job, step: u32, item: u32) -> bool {
    let next = |state: &StepState| state.cursor == item && state.reached.is_none();
    job.step(step).is_some_and(next)
}

fn forbidden(facts: &Facts<'_>, step: u32, active: &Active, refused: Option<&str>) -> Option<Stop> {
    let deadline = facts.job.deadline_of(step, active);
    let overdue = deadline.is_some_and(|deadline| deadline < facts.now);
    let (reason, then, error) = match refused {
        // A command that cannot be put together is nothing a handler could mend.
        Some(why) => (Reason::Permanent, Then::DeadLetter, why.to_owned()),
        None if active.is_used_up() => {
            let sentence = format!(
                "{} before the state was imported ({} attempts)",
                Reason::Attempts.sentence(),
                active.attempts
            );
            let last = active.error.as_ref();
            let last = last.map_or("", |last| facts.job.texts.read(last));
            (Reason::Attempts, Then::Stop, with_last(&sentence, last))
        }
        None if overdue => {
            let last = facts.last_error(active);
            let error = with_last(Reason::Deadline.sentence(), &last);
            (Reason::Deadline, Then::Stop, error)
        }
        None => return None,
    };
    Some(Stop {
        reason,
        then,
        error,
        sum: None,
        rule: None,
    })
}
