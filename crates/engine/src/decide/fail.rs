//! Answers the stop of a command: its handler runs, or its item is skipped or becomes a dead letter.

use undaunted_policy::{Reason, RuleAction};

use super::draft::EventDraft;
use super::words::with_last;
use crate::event::{AttemptId, CommandStopped, ItemEvent, LateResult, RetryArithmetic, StoredText};
use crate::id::{AttemptNumber, CommandId};
use crate::job::{ActiveItem, HandlerFrame};
use crate::plan::Successor;
use crate::workflow::OnItemFailure;

/// How many bytes of an error are stored with each event if the text table has no room for it.
const MAX_ERROR: usize = 512;

pub(super) struct Stop {
    pub(super) reason: Reason,
    pub(super) then: RuleAction,
    pub(super) error: String,
    pub(super) sum: Option<RetryArithmetic>,
    pub(super) rule: Option<u32>,
}

impl Stop {
    pub(super) const fn because(reason: Reason, error: String) -> Self {
        Self { reason, then: RuleAction::Stop, error, sum: None, rule: None }
    }
}

/// Stops retrying a command, and runs its handler if it may.
pub(super) fn stop(draft: &mut EventDraft<'_>, of: AttemptId, active: &ActiveItem, why: &Stop) {
    let handler = handler(draft, of, active, why);
    // The failed attempt holds the whole text; these events would store it twice more.
    let error = draft.text(&why.error).brief(MAX_ERROR);
    draft.push(ItemEvent::CommandStopped(Box::new(CommandStopped {
        of,
        reason: why.reason,
        error: error.clone(),
        arithmetic: why.sum,
        handler,
        rule: why.rule,
    })));
    if handler.is_some() {
        return;
    }
    if why.then == RuleAction::Skip {
        if !is_late_result(draft, of, Some(why.reason)) {
            skip(draft, of, why.reason);
        }
        return;
    }
    let outer = outer_frame(draft, of, active);
    give_up(draft, of, outer, why.reason, &error);
}

/// Like [`stop`], but keeps the original reason of a command whose handler has already run.
pub(super) fn stop_unless_repeated(
    draft: &mut EventDraft<'_>,
    of: AttemptId,
    active: &ActiveItem,
    why: &Stop,
) {
    match active.repeated() {
        Some(frame) => give_up(draft, of, None, frame.reason, &frame.error),
        None => stop(draft, of, active, why),
    }
}

/// Records a result that arrived after its step was completed. Returns true if it does not count and the
/// item is settled.
fn is_late_result(draft: &mut EventDraft<'_>, of: AttemptId, reason: Option<Reason>) -> bool {
    let job = draft.job;
    let state = job.step(of.step).filter(|state| state.is_without(of.index));
    let Some(reached) = state.and_then(|state| state.reached) else { return false };
    let counted = job.counts_late_results();
    let (step, index) = (of.step, of.index);
    // The attempt has recorded what the result says.
    let (output, error) = (None, None);
    draft.push(ItemEvent::LateResult(Box::new(LateResult { step, index, reason, counted, output, error })));
    if !counted {
        skip(draft, of, reached.reason());
    }
    !counted
}

pub(super) fn item_succeeded(draft: &mut EventDraft<'_>, of: AttemptId) {
    if !is_late_result(draft, of, None) {
        draft.push(ItemEvent::Succeeded { step: of.step, index: of.index });
    }
}

/// The first command of the handler that this stop starts.
pub(super) fn handler(
    draft: &EventDraft<'_>,
    of: AttemptId,
    active: &ActiveItem,
    why: &Stop,
) -> Option<CommandId> {
    let plan = draft.job.plan();
    let handler = plan.command(of.command)?.on_failure.as_deref()?;
    let rounds = active.repeated().map_or(0, |frame| frame.rounds);
    let may = why.then == RuleAction::Stop && rounds < handler.max_attempts.max(1);
    plan.handler_of(of.command).filter(|_| may)
}

pub(super) fn skip(draft: &mut EventDraft<'_>, of: AttemptId, reason: Reason) {
    draft.push(ItemEvent::Skipped { step: of.step, index: of.index, reason });
}

/// The frame of the command whose handler `of` belongs to.
fn outer_frame<'a>(
    draft: &EventDraft<'_>,
    of: AttemptId,
    active: &'a ActiveItem,
) -> Option<&'a HandlerFrame> {
    let parent = draft.job.plan().handled_by(of.command)?;
    active.frames.iter().rfind(|frame| frame.command == parent)
}

/// Fails an item. A failing handler keeps the reason of the command it handles.
pub(super) fn give_up(
    draft: &mut EventDraft<'_>,
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
    if is_late_result(draft, of, Some(reason)) {
        return;
    }
    dead_letter(draft, failed, reason, error);
}

fn dead_letter(draft: &mut EventDraft<'_>, of: AttemptId, reason: Reason, error: StoredText) {
    let rule = draft.job.plan().map(of.step).map(|map| map.on_item_failure);
    match rule {
        Some(OnItemFailure::Skip) => skip(draft, of, reason),
        _ => draft.push(ItemEvent::DeadLettered { of, reason, error }),
    }
}

/// Ends an item that the deadline of its job cuts off: a dead letter, so that it can be redriven. One that was
/// never tried is skipped, as is one that its step was completed without.
pub(super) fn cut_off(draft: &mut EventDraft<'_>, of: AttemptId, active: &ActiveItem, error: &str) {
    let job = draft.job;
    let is_without = job.step(of.step).is_some_and(|state| state.is_without(of.index));
    if is_without || !active.was_tried() {
        return skip(draft, of, Reason::Deadline);
    }
    let handled = active.frames.first().filter(|_| active.repeated().is_none());
    let failed = handled.map_or(of, |frame| {
        // The handler did not finish. A redrive begins with the command that had failed.
        AttemptId::new(of.item(), frame.command, AttemptNumber(frame.attempts))
    });
    let error = match handled {
        Some(frame) => with_last(Reason::Deadline.sentence(), job.texts.read(&frame.error)),
        None => error.to_owned(),
    };
    let error = draft.text(&error).brief(MAX_ERROR);
    draft.push(ItemEvent::CommandStopped(Box::new(CommandStopped {
        of,
        reason: Reason::Deadline,
        error: error.clone(),
        arithmetic: None,
        handler: None,
        rule: None,
    })));
    dead_letter(draft, failed, Reason::Deadline, error);
}

pub(super) fn finish(draft: &mut EventDraft<'_>, of: AttemptId, active: &ActiveItem, after: Successor) {
    match after {
        // The preceding event names the command.
        Successor::Command(_) => {}
        Successor::Item => item_succeeded(draft, of),
        Successor::Handler(parent) => handled(draft, of, active, parent),
    }
}

/// Answers the success of a handler. A stopping job starts nothing more.
fn handled(draft: &mut EventDraft<'_>, of: AttemptId, active: &ActiveItem, parent: CommandId) {
    let job = draft.job;
    let frame = active.frames.iter().rfind(|frame| frame.command == parent);
    let command = job.plan().command(parent);
    let handler = command.and_then(|command| command.on_failure.as_deref());
    let (Some(frame), Some(handler)) = (frame, handler) else { return };
    let failed = AttemptId::new(of.item(), parent, AttemptNumber(frame.attempts));
    // The deadline lets an item reach its next command, and cuts it off there.
    let ending = job.end_reason(of.item()).filter(|_| !job.stops_at_deadline());
    if handler.max_attempts > 0 && job.stops_at_deadline() {
        return cut_off(draft, of, active, "");
    }
    if handler.max_attempts > 0 {
        // The extra attempt is charged and limited like any other; without it the item fails.
        let balance = job.pool.map(|pool| pool.balance(active.charged));
        let refused = balance.is_some_and(|balance| balance.refuses().is_some());
        let deadline = job.deadline_for(of.step, parent, active.began());
        if refused || deadline.is_some_and(|deadline| deadline < draft.now) {
            give_up(draft, failed, None, frame.reason, &frame.error);
        } else if let Some(reason) = ending {
            skip(draft, of, reason);
        } else {
            draft.push(ItemEvent::CommandRepeated { of: failed });
        }
        return;
    }
    if handler.fail_workflow {
        return give_up(draft, failed, None, frame.reason, &frame.error);
    }
    let after = job.plan().after(parent);
    let next = match (after, ending) {
        (Successor::Command(_), Some(reason)) => return skip(draft, of, reason),
        (Successor::Command(next), None) => Some(next),
        (Successor::Handler(_) | Successor::Item, _) => None,
    };
    draft.push(ItemEvent::CommandRecovered { of: failed, next });
    finish(draft, of, active, after);
}
