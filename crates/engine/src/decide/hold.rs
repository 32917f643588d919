//! Holds and releases items as their breakers answered, and stops items whose hold has expired.

use undaunted_policy::spelling::format_duration;
use undaunted_policy::{Reason, Ticket, Timestamp};

use super::draft::EventDraft;
use super::fail::{Stop, stop_unless_repeated};
use super::words::with_last;
use crate::breaker::BreakerAnswer;
use crate::event::{
    AttemptId, BreakerPass, ItemEvent, RetryArithmetic, StartHeld, StartReleased, StoredText,
};
use crate::job::{ActiveItem, Activity};

pub(super) enum Passage {
    Admitted(Option<BreakerPass>),
    /// The hold is recorded already, or by this decision.
    Held,
    Refused(Stop),
}

pub(super) fn pass(
    draft: &mut EventDraft<'_>,
    of: AttemptId,
    active: &ActiveItem,
    gate: &BreakerAnswer,
) -> Passage {
    match gate {
        BreakerAnswer::NoBreaker => Passage::Admitted(None),
        BreakerAnswer::Admitted { breaker, ticket } => {
            Passage::Admitted(Some(open(draft, of, breaker, *ticket)))
        }
        BreakerAnswer::Held { breaker, until, longest } => {
            if active.activity != Activity::Held {
                hold(draft, of, breaker, [*until, draft.after(*longest)], None);
            }
            Passage::Held
        }
        BreakerAnswer::Refused { breaker } => Passage::Refused(circuit_open(draft, active, breaker, "")),
    }
}

/// Holds an item after a failure because a rule says so, which also opens its breaker.
pub(super) fn hold_by_rule(draft: &mut EventDraft<'_>, of: AttemptId, breaker: &str, sum: RetryArithmetic) {
    let command = draft.job.plan().command(of.command);
    // `check` ensures that a command with such a rule has a breaker.
    let settings = command.and_then(|command| command.breaker.as_deref());
    let settings = settings.map(|breaker| breaker.settings).unwrap_or_default();
    let until = draft.after(Some(settings.recovery_timeout));
    let expires = draft.after(settings.max_hold);
    hold(draft, of, breaker, [until, expires], Some(sum));
}

/// `until` is the time of the next probe, `longest` the end of `max_hold`.
fn hold(
    draft: &mut EventDraft<'_>,
    of: AttemptId,
    breaker: &str,
    [until, longest]: [Option<Timestamp>; 2],
    sum: Option<RetryArithmetic>,
) {
    let job = draft.job;
    let active = job.active(of.item());
    let deadline = active.and_then(|active| job.deadline_of(of.step, active));
    let left = job.attempts_left(of.command, of.attempt.0);
    let breaker = draft.text(breaker);
    draft.push(ItemEvent::Held(Box::new(StartHeld {
        of,
        breaker,
        until,
        expires: deadline.into_iter().chain(longest).min(),
        left: Some(left).filter(|left| *left < u64::MAX),
        arithmetic: sum,
    })));
}

fn open(draft: &mut EventDraft<'_>, of: AttemptId, breaker: &str, ticket: Ticket) -> BreakerPass {
    let name: StoredText = draft.text(breaker);
    if let Some(held) = draft.job.held_for(of, draft.now) {
        draft.push(ItemEvent::Released(StartReleased { of, breaker: name.clone(), held }));
    }
    BreakerPass { breaker: name, generation: ticket.generation(), probe: ticket.probe }
}

/// Stops held items whose deadline or `max_hold` has passed.
pub(super) fn expire(draft: &mut EventDraft<'_>) {
    let job = draft.job;
    for (step, state) in job.busy_steps() {
        for item in state.held.expired(draft.now) {
            let (Some(active), Some(hold)) = (job.active(step.item(item)), state.held.get(item)) else {
                continue;
            };
            let of = active.last_attempt(step.item(item));
            let deadline = job.deadline_of(step, active);
            let overdue = deadline.is_some_and(|deadline| deadline <= draft.now);
            let why = if overdue {
                let last = draft.last_error(active);
                let sentence = past_deadline_while_held(&hold.breaker);
                Stop::because(Reason::Deadline, with_last(&sentence, &last))
            } else {
                let time = hold.expires.unwrap_or(draft.now).since(hold.since);
                let longest = format!(", held for {} (`max_hold`)", format_duration(time));
                circuit_open(draft, active, &hold.breaker, &longest)
            };
            stop_unless_repeated(draft, of, active, &why);
        }
    }
}

pub(super) fn past_deadline_while_held(breaker: &str) -> String {
    format!("{} while the breaker `{breaker}` was open", Reason::Deadline.sentence())
}

fn circuit_open(draft: &EventDraft<'_>, active: &ActiveItem, breaker: &str, held: &str) -> Stop {
    let sentence = format!("{} (`{breaker}`){held}", Reason::CircuitOpen.sentence());
    let error = with_last(&sentence, &draft.last_error(active));
    Stop::because(Reason::CircuitOpen, error)
}
