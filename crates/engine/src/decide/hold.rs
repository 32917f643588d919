//! A breaker holds or releases an item, or a hold has expired.

use undaunted_policy::spelling::format_duration;
use undaunted_policy::{Reason, RuleAction, Ticket, Timestamp};

use super::facts::Facts;
use super::fail::{Stop, stop_unless_repeated};
use super::words::with_last;
use crate::breaker::BreakerAnswer;
use crate::event::{
    AttemptId, BreakerPass, ItemEvent, RetryArithmetic, StartHeld, StartReleased, StoredText,
};
use crate::job::{ActiveItem, Activity};

pub(super) enum Passage {
    Free(Option<BreakerPass>),
    /// Recorded already, or by these facts.
    Held,
    Refused(Stop),
}

pub(super) fn pass(
    facts: &mut Facts<'_>,
    of: AttemptId,
    active: &ActiveItem,
    gate: &BreakerAnswer,
) -> Passage {
    match gate {
        BreakerAnswer::NoBreaker => Passage::Free(None),
        BreakerAnswer::Admitted { breaker, ticket } => Passage::Free(Some(open(facts, of, breaker, *ticket))),
        BreakerAnswer::Held { breaker, until, longest } => {
            if active.activity != Activity::Held {
                hold(facts, of, breaker, [*until, facts.after(*longest)], None);
            }
            Passage::Held
        }
        BreakerAnswer::Refused { breaker } => Passage::Refused(circuit_open(facts, active, breaker, "")),
    }
}

/// A rule holds an item after a failure, which also opens its breaker.
pub(super) fn hold_by_rule(facts: &mut Facts<'_>, of: AttemptId, breaker: &str, sum: RetryArithmetic) {
    let command = facts.job.plan().command(of.command);
    // `check` ensures that a command with such a rule has a breaker.
    let settings = command.and_then(|command| command.breaker.as_deref());
    let settings = settings.map(|breaker| breaker.settings).unwrap_or_default();
    let until = facts.after(Some(settings.recovery_timeout));
    let expires = facts.after(settings.max_hold);
    hold(facts, of, breaker, [until, expires], Some(sum));
}

/// `until` is the next probe, `longest` the end of `max_hold`.
fn hold(
    facts: &mut Facts<'_>,
    of: AttemptId,
    breaker: &str,
    [until, longest]: [Option<Timestamp>; 2],
    sum: Option<RetryArithmetic>,
) {
    let job = facts.job;
    let active = job.active(of.item());
    let deadline = active.and_then(|active| job.deadline_of(of.step, active));
    let left = job.attempts_left(of.command, of.attempt.0);
    let breaker = facts.text(breaker);
    facts.push(ItemEvent::Held(Box::new(StartHeld {
        of,
        breaker,
        until,
        expires: deadline.into_iter().chain(longest).min(),
        left: Some(left).filter(|left| *left < u64::MAX),
        sum,
    })));
}

fn open(facts: &mut Facts<'_>, of: AttemptId, breaker: &str, ticket: Ticket) -> BreakerPass {
    let name: StoredText = facts.text(breaker);
    if let Some(held) = facts.job.held_for(of, facts.now) {
        facts.push(ItemEvent::Released(StartReleased { of, breaker: name.clone(), held }));
    }
    BreakerPass { breaker: name, generation: ticket.generation(), probe: ticket.probe }
}

/// Stops held items whose deadline or `max_hold` has passed.
pub(super) fn expire(facts: &mut Facts<'_>) {
    let job = facts.job;
    for (step, state) in job.busy_steps() {
        for item in state.held.expired(facts.now) {
            let (Some(active), Some(hold)) = (job.active(step.item(item)), state.held.get(item)) else {
                continue;
            };
            let of = active.last_attempt(step.item(item));
            let deadline = job.deadline_of(step, active);
            let overdue = deadline.is_some_and(|deadline| deadline <= facts.now);
            let why = if overdue {
                let last = facts.last_error(active);
                let sentence = format!("The deadline passed while the breaker `{}` was open", hold.breaker);
                stop_because(Reason::Deadline, with_last(&sentence, &last))
            } else {
                let time = hold.expires.unwrap_or(facts.now).since(hold.since);
                let time = format_duration(time);
                let longest = format!(", and it was held for {time}, as long as it may be");
                circuit_open(facts, active, &hold.breaker, &longest)
            };
            stop_unless_repeated(facts, of, active, &why);
        }
    }
}

fn circuit_open(facts: &Facts<'_>, active: &ActiveItem, breaker: &str, held: &str) -> Stop {
    let sentence = format!("{} (`{breaker}`){held}", Reason::CircuitOpen.sentence());
    let error = with_last(&sentence, &facts.last_error(active));
    stop_because(Reason::CircuitOpen, error)
}

const fn stop_because(reason: Reason, error: String) -> Stop {
    Stop { reason, then: RuleAction::Stop, error, sum: None, rule: None }
}
