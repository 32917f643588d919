//! A command has stopped: its handler, and what becomes of the item.

use undaunted_policy::{Reason, RuleAction};

use super::facts::Facts;
use crate::event::{AttemptId, CommandStopped, ItemEvent, LateResult, RetryArithmetic, StoredText};
use crate::id::{AttemptNumber, CommandId};
use crate::job::{ActiveItem, HandlerFrame, StepState};
use crate::plan::Successor;
use crate::workflow::OnItemFailure;

/// Bytes stored of an error that is too rare to be kept once.
const BRIEF: usize = 512;

pub(super) struct Stop {
    pub(super) reason: Reason,
    pub(super) then: RuleAction,
    pub(super) error: String,
    pub(super) sum: Option<RetryArithmetic>,
    pub(super) rule: Option<u32>,
}

/// Stops retrying a command, and runs its handler if it may.
pub(super) fn stop(facts: &mut Facts<'_>, of: AttemptId, active: &ActiveItem, why: &Stop) {
    let handler = handler(facts, of, active, why);
    // The attempt has the whole text; here it would be stored twice more.
    let error = facts.text(&why.error).brief(BRIEF);
    facts.push(ItemEvent::CommandStopped(Box::new(CommandStopped {
        of,
        reason: why.reason,
        error: error.clone(),
        sum: why.sum,
        handler,
        rule: why.rule,
    })));
    if handler.is_some() {
        return;
    }
    if why.then == RuleAction::Skip {
        if !is_late_result(facts, of, Some(why.reason)) {
            skip(facts, of, why.reason);
        }
        return;
    }
    let outer = outer_frame(facts, of, active);
    give_up(facts, of, outer, why.reason, &error);
}

/// Like [`stop`], but keeps the original reason of a command whose handler has already run.
pub(super) fn stop_unless_repeated(facts: &mut Facts<'_>, of: AttemptId, active: &ActiveItem, why: &Stop) {
    match active.repeated() {
        Some(frame) => give_up(facts, of, None, frame.reason, &frame.error),
        None => stop(facts, of, active, why),
    }
}

/// Records a result that came after its step was complete. Returns true if it does not count and the item
/// is settled.
fn is_late_result(facts: &mut Facts<'_>, of: AttemptId, reason: Option<Reason>) -> bool {
    let job = facts.job;
    let without = |state: &&StepState| state.is_without(of.index);
    let state = job.step(of.step).filter(without);
    let Some(reached) = state.and_then(|state| state.reached) else {
        return false;
    };
    let counted = job.counts_late_results();
    facts.push(ItemEvent::LateResult(LateResult { step: of.step, index: of.index, reason, counted }));
    if !counted {
        skip(facts, of, reached.reason());
    }
    !counted
}

fn item_succeeded(facts: &mut Facts<'_>, of: AttemptId) {
    if !is_late_result(facts, of, None) {
        facts.push(ItemEvent::Succeeded { step: of.step, index: of.index });
    }
}

/// The first command of the handler that runs on this stop.
pub(super) fn handler(
    facts: &Facts<'_>,
    of: AttemptId,
    active: &ActiveItem,
    why: &Stop,
) -> Option<CommandId> {
    let plan = facts.job.plan();
    let handler = plan.command(of.command)?.on_failure.as_deref()?;
    let rounds = active.repeated().map_or(0, |frame| frame.rounds);
    let may = why.then == RuleAction::Stop && rounds < handler.max_attempts.max(1);
    plan.handler_of(of.command).filter(|_| may)
}

pub(super) fn skip(facts: &mut Facts<'_>, of: AttemptId, reason: Reason) {
    facts.push(ItemEvent::Skipped { step: of.step, index: of.index, reason });
}

/// The frame of the command whose handler `of` belongs to.
fn outer_frame<'a>(facts: &Facts<'_>, of: AttemptId, active: &'a ActiveItem) -> Option<&'a HandlerFrame> {
    let parent = facts.job.plan().handled_by(of.command)?;
    active.frames.iter().rfind(|frame| frame.command == parent)
}

/// Fails an item. A failing handler keeps the reason of the command it handles.
pub(super) fn give_up(
    facts: &mut Facts<'_>,
    of: AttemptId,
    outer: Option<&HandlerFrame>,
    reason: Reason,
    error: &StoredText,
) {
    let (failed, reason, error) = match outer {
        Some(frame) => {
            let failed = AttemptId::new(of.item(), frame.command, AttemptNumber(frame.attempts));
            (failed, frame.reason, frame.error.clone())
        }
        None => (of, reason, error.clone()),
    };
    if is_late_result(facts, of, Some(reason)) {
        return;
    }
    let rule = facts.job.plan().map(of.step).map(|map| map.on_item_failure);
    match rule {
        Some(OnItemFailure::Skip) => skip(facts, of, reason),
        _ => facts.push(ItemEvent::DeadLettered { of: failed, reason, error }),
    }
}

pub(super) fn finish(facts: &mut Facts<'_>, of: AttemptId, active: &ActiveItem, after: Successor) {
    match after {
        // The preceding event names it.
        Successor::Command(_) => {}
        Successor::Item => item_succeeded(facts, of),
        Successor::Handler(parent) => handled(facts, of, active, parent),
    }
}

/// A handler has succeeded. A stopping job begins nothing more.
fn handled(facts: &mut Facts<'_>, of: AttemptId, active: &ActiveItem, parent: CommandId) {
    let job = facts.job;
    let frame = active.frames.iter().rfind(|frame| frame.command == parent);
    let command = job.plan().command(parent);
    let handler = command.and_then(|command| command.on_failure.as_deref());
    let (Some(frame), Some(handler)) = (frame, handler) else {
        return;
    };
    let failed = AttemptId::new(of.item(), parent, AttemptNumber(frame.attempts));
    let ending = job.ending(of.item());
    if handler.max_attempts > 0 {
        // The extra attempt is charged and limited like any other; without it the handler saved nothing.
        let balance = job.pool.map(|pool| pool.balance(active.charged));
        let refused = balance.is_some_and(|balance| balance.refuses().is_some());
        let deadline = job.deadline_for(of.step, parent, active.began());
        if refused || deadline.is_some_and(|deadline| deadline < facts.now) {
            give_up(facts, failed, None, frame.reason, &frame.error);
        } else if let Some(reason) = ending {
            skip(facts, of, reason);
        } else {
            facts.push(ItemEvent::CommandRepeated { of: failed });
        }
        return;
    }
    if handler.fail_workflow {
        return give_up(facts, failed, None, frame.reason, &frame.error);
    }
    let after = job.plan().after(parent);
    let next = match (after, ending) {
        (Successor::Command(_), Some(reason)) => return skip(facts, of, reason),
        (Successor::Command(next), None) => Some(next),
        (Successor::Handler(_) | Successor::Item, _) => None,
    };
    facts.push(ItemEvent::CommandRecovered { of: failed, next });
    finish(facts, of, active, after);
}
