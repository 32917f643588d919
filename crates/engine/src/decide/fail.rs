//! A command has stopped: what its handler does about it, and what becomes of the item.

use undaunted_policy::{Reason, Then};

use super::facts::Facts;
use crate::event::{AttemptId, CommandStopped, Event, ItemEvent, Late, Sum, Text};
use crate::id::{AttemptNumber, CommandId};
use crate::job::{Active, Frame, StepState};
use crate::plan::After;
use crate::workflow::OnItemFailure;

/// How much is said of an error that is too different from others to be kept once.
const BRIEF: usize = 512;

/// Why a command stops.
pub(super) struct Stop {
    pub(super) reason: Reason,
    pub(super) then: Then,
    pub(super) error: String,
    pub(super) sum: Option<Sum>,
    pub(super) rule: Option<u32>,
}

/// A command is tried no further. Its handler runs, if it has one that may.
pub(super) fn stop(facts: &mut Facts<'_>, of: AttemptId, active: &Active, why: &Stop) {
    let handler = handler(facts, of, active, why);
    // The attempt has the whole of it; here it stands twice more.
    let error = facts.text(&why.error).brief(BRIEF);
    facts.push(Event::Item(ItemEvent::CommandStopped(Box::new(
        CommandStopped {
            of,
            reason: why.reason,
            error: error.clone(),
            sum: why.sum,
            handler,
            rule: why.rule,
        },
    ))));
    if handler.is_some() {
        return;
    }
    if why.then == Then::Skip {
        if !came_late(facts, of, Some(why.reason)) {
            skip(facts, of, why.reason);
        }
        return;
    }
    let outer = outer_frame(facts, of, active);
    give_up(facts, of, outer, why.reason, &error);
}

/// The same; but what a command stopped for whose handler has run stands.
pub(super) fn stop_unless_repeated(
    facts: &mut Facts<'_>,
    of: AttemptId,
    active: &Active,
    why: &Stop,
) {
    match active.repeated() {
        Some(frame) => give_up(facts, of, None, frame.reason, &frame.error),
        None => stop(facts, of, active, why),
    }
}

/// An item has come to its end, or failed because of this. Whether it came too late to count, and is
/// settled.
fn came_late(facts: &mut Facts<'_>, of: AttemptId, reason: Option<Reason>) -> bool {
    let job = facts.job;
    let without = |state: &&StepState| state.is_without(of.index);
    let state = job.step(of.step).filter(without);
    let Some(reached) = state.and_then(|state| state.reached) else {
        return false;
    };
    let counted = job.counts_late_results();
    facts.push(Event::Item(ItemEvent::LateResult(Late {
        step: of.step,
        index: of.index,
        reason,
        counted,
    })));
    if !counted {
        skip(facts, of, reached.reason());
    }
    !counted
}

fn item_succeeded(facts: &mut Facts<'_>, of: AttemptId) {
    if !came_late(facts, of, None) {
        facts.push(Event::Item(ItemEvent::Succeeded {
            step: of.step,
            index: of.index,
        }));
    }
}

/// The first command of the handler that runs when a command stops because of this.
pub(super) fn handler(
    facts: &Facts<'_>,
    of: AttemptId,
    active: &Active,
    why: &Stop,
) -> Option<CommandId> {
    let plan = facts.job.plan();
    let handler = plan.command(of.command)?.on_failure.as_deref()?;
    let rounds = active.repeated().map_or(0, |frame| frame.rounds);
    let may = why.then == Then::Stop && rounds < handler.max_attempts.max(1);
    plan.handler_of(of.command).filter(|_| may)
}

/// An item is not gone on with.
pub(super) fn skip(facts: &mut Facts<'_>, of: AttemptId, reason: Reason) {
    facts.push(Event::Item(ItemEvent::Skipped {
        step: of.step,
        index: of.index,
        reason,
    }));
}

/// The frame of the command whose handler this one belongs to.
fn outer_frame<'a>(facts: &Facts<'_>, of: AttemptId, active: &'a Active) -> Option<&'a Frame> {
    let parent = facts.job.plan().handled_by(of.command)?;
    active.frames.iter().rfind(|frame| frame.command == parent)
}

/// An item has failed. A handler that fails leaves the reason of the command it was to save.
pub(super) fn give_up(
    facts: &mut Facts<'_>,
    of: AttemptId,
    outer: Option<&Frame>,
    reason: Reason,
    error: &Text,
) {
    let (failed, reason, error) = match outer {
        Some(frame) => {
            let failed = AttemptId::new(of.item(), frame.command, AttemptNumber(frame.attempts));
            (failed, frame.reason, frame.error.clone())
        }
        None => (of, reason, error.clone()),
    };
    if came_late(facts, of, Some(reason)) {
        return;
    }
    let rule = facts.job.plan().map(of.step).map(|map| map.on_item_failure);
    match rule {
        Some(OnItemFailure::Skip) => skip(facts, of, reason),
        _ => facts.push(Event::Item(ItemEvent::DeadLettered {
            of: failed,
            reason,
            error,
        })),
    }
}

/// A command is done with, and `after` comes next.
pub(super) fn finish(facts: &mut Facts<'_>, of: AttemptId, active: &Active, after: After) {
    match after {
        // Said by the event that has just been put down.
        After::Command(_) => {}
        After::Item => item_succeeded(facts, of),
        After::Handler(parent) => handled(facts, of, active, parent),
    }
}

/// The handler of a command has succeeded. If the job stops meanwhile, nothing is begun any more.
fn handled(facts: &mut Facts<'_>, of: AttemptId, active: &Active, parent: CommandId) {
    let job = facts.job;
    let frame = active.frames.iter().rfind(|frame| frame.command == parent);
    let handler = job
        .plan()
        .command(parent)
        .and_then(|command| command.on_failure.as_deref());
    let (Some(frame), Some(handler)) = (frame, handler) else {
        return;
    };
    let failed = AttemptId::new(of.item(), parent, AttemptNumber(frame.attempts));
    let ending = job.ending(of.item());
    if handler.max_attempts > 0 {
        // One attempt more is charged and limited like any other; without it nothing was saved.
        let balance = job.pool.map(|pool| pool.balance(active.charged));
        let refused = balance.is_some_and(|balance| balance.refuses().is_some());
        let deadline = job.deadline_for(of.step, parent, active.began());
        if refused || deadline.is_some_and(|deadline| deadline < facts.now) {
            give_up(facts, failed, None, frame.reason, &frame.error);
        } else if let Some(reason) = ending {
            skip(facts, of, reason);
        } else {
            facts.push(Event::Item(ItemEvent::CommandRepeated { of: failed }));
        }
        return;
    }
    if handler.fail_workflow {
        return give_up(facts, failed, None, frame.reason, &frame.error);
    }
    let after = job.plan().after(parent);
    let next = match (after, ending) {
        (After::Command(_), Some(reason)) => return skip(facts, of, reason),
        (After::Command(next), None) => Some(next),
        (After::Handler(_) | After::Item, _) => None,
    };
    facts.push(Event::Item(ItemEvent::CommandRecovered {
        of: failed,
        next,
    }));
    match after {
        After::Command(_) => {}
        After::Item => item_succeeded(facts, of),
        After::Handler(outer) => handled(facts, of, active, outer),
    }
}
