//! A breaker keeps an item back, and lets it go; or it was held for too long.

use undaunted_policy::mutant::{self, Mutant};
use undaunted_policy::shape::format_duration;
use undaunted_policy::{Admission, Reason, Then, Ticket};

use super::facts::Facts;
use super::fail::{Stop, stop_unless_repeated};
use super::words::with_last;
use crate::event::{Event, Pass, Released, Subject, Sum, Text};
use crate::gate;
use crate::job::{Active, Doing};

/// What a breaker says to a start.
pub(super) enum Gate {
    /// Go ahead.
    Open(Option<Pass>),
    /// Not now; that is on record already, or is from now on.
    Held,
    /// No.
    Refused(Stop),
}

/// Asks the breaker of the command an item is about to start.
pub(super) fn ask(facts: &mut Facts<'_>, of: Subject, active: &Active) -> Gate {
    let job = facts.job;
    // What the item was aimed at may be the target of the command before this one.
    let command = job.plan().command(of.command);
    let asks_none = command.is_none_or(|command| command.breaker.is_none());
    if asks_none && !mutant::is(Mutant::WrongBreakerAsked) {
        return Gate::Open(None);
    }
    let aimed_at = job.breakers().aimed_at((of.step, of.item));
    let Some(breaker) = job.breaker_of(of.command).or(aimed_at) else {
        return Gate::Open(None);
    };
    let held = active.doing == Doing::Held;
    match job.breakers().admission(breaker, facts.now) {
        // One is let through to find out, and that is the one with the most attempts left.
        Admission::Go(ticket) if ticket.probe && !gate::may_probe(job, of, breaker) => {
            keep(facts, of, breaker, held)
        }
        Admission::Go(ticket) => Gate::Open(Some(go(facts, of, breaker, ticket))),
        Admission::Held { .. } => keep(facts, of, breaker, held),
        Admission::Refused => Gate::Refused(circuit_open(facts, active, breaker, "")),
    }
}

fn keep(facts: &mut Facts<'_>, of: Subject, breaker: &str, held: bool) -> Gate {
    if !held {
        hold(facts, of, breaker, None);
    }
    Gate::Held
}

/// An item is held from now on.
pub(super) fn hold(facts: &mut Facts<'_>, of: Subject, breaker: &str, sum: Option<Sum>) {
    let mut held = facts.job.hold(of, breaker, sum, facts.now);
    held.breaker = facts.text(breaker);
    facts.push(Event::Held(Box::new(held)));
}

fn go(facts: &mut Facts<'_>, of: Subject, breaker: &str, ticket: Ticket) -> Pass {
    let name: Text = facts.text(breaker);
    if let Some(held) = facts.job.held_for(of, facts.now) {
        facts.push(Event::Released(Released {
            subject: of,
            breaker: name.clone(),
            held,
        }));
    }
    Pass {
        breaker: name,
        generation: ticket.generation(),
        probe: ticket.probe,
    }
}

/// What was held for too long is not held any more: its time is up, or it has waited long enough.
pub(super) fn expire(facts: &mut Facts<'_>) {
    let job = facts.job;
    for (step, state) in job.busy_steps() {
        for item in state.held.expired(facts.now) {
            let (Some(active), Some(hold)) = (job.active(step, item), state.held.get(item)) else {
                continue;
            };
            let of = Subject {
                step,
                item,
                command: active.command,
                attempt: active.attempts,
            };
            let deadline = job.deadline_of(step, active);
            let overdue = deadline.is_some_and(|deadline| deadline <= facts.now);
            let why = if overdue {
                let last = facts.last_error(active);
                let sentence = format!(
                    "The deadline passed while the breaker `{}` was open",
                    hold.breaker
                );
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

fn circuit_open(facts: &Facts<'_>, active: &Active, breaker: &str, held: &str) -> Stop {
    let sentence = format!("{} (`{breaker}`){held}", Reason::CircuitOpen.sentence());
    let error = with_last(&sentence, &facts.last_error(active));
    stop_because(Reason::CircuitOpen, error)
}

const fn stop_because(reason: Reason, error: String) -> Stop {
    Stop {
        reason,
        then: Then::Stop,
        error,
        sum: None,
        rule: None,
    }
}
