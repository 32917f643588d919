//! Events and effects in words, so that a test compares lines a reader understands.

use undaunted_engine::breaker::BreakerChange;
use undaunted_engine::effect::Effect;
use undaunted_engine::event::{AttemptId, Event, ItemEvent, JobEvent, Record, StepEvent};
use undaunted_engine::id::{CommandId, ItemId};
use undaunted_policy::Timestamp;

use crate::scene::T0;

/// One line for each record.
pub(crate) fn said(records: &[Record]) -> Vec<String> {
    let records = records.iter();
    records.map(|record| line(&record.event)).collect()
}

/// One line for each effect.
pub(crate) fn wished(effects: &[Effect]) -> Vec<String> {
    let effects = effects.iter();
    let lines = effects.map(|effect| match effect {
        Effect::Begin { start, item } => format!("begin {start} for {}", place(*item)),
        Effect::ReadInput { step, start: None } => format!("read the items of {step}"),
        Effect::ReadInput { step, start: Some(start) } => format!("read the items of {step} by {start}"),
        Effect::EndStep { step } => format!("end what runs of {step}"),
        Effect::EndAll => "end all".to_owned(),
    });
    lines.collect()
}

/// A change of a breaker.
pub(crate) fn turn(change: &BreakerChange) -> String {
    let word = change.change.word();
    match change.state.until() {
        Some(until) => format!("{word} until {}", since(until)),
        None => word.to_owned(),
    }
}

/// An instant, counted from the submission.
pub(crate) fn since(at: Timestamp) -> String {
    format!("+{:?}", at.since(T0))
}

/// `step/item`.
fn place(item: ItemId) -> String {
    let ItemId { step, index } = item;
    format!("{step}/{index}")
}

/// `step/item command.attempt`.
fn attempt(of: AttemptId) -> String {
    let AttemptId { step, index, command, attempt } = of;
    format!("{step}/{index} {command}.{attempt}")
}

fn line(event: &Event) -> String {
    let word = event.word();
    let rest = match event {
        Event::Job(event) => of_the_job(event),
        Event::Step(event) => of_a_step(event),
        Event::Item(event) => of_an_item(event),
        Event::Breaker(_) => String::new(),
    };
    format!("{word} {rest}").trim_end().to_owned()
}

fn of_the_job(event: &JobEvent) -> String {
    match event {
        JobEvent::TextKept { text } => format!("`{text}`"),
        JobEvent::Stopping { reason } => reason.to_string(),
        JobEvent::Partial(_) => "partial".to_owned(),
        JobEvent::Failed(ended) | JobEvent::Cancelled(ended) => {
            ended.reason.map_or_else(String::new, |it| it.to_string())
        }
        JobEvent::PoolToppedUp { added, total, .. } => format!("by {added} to {total}"),
        JobEvent::Resumed(resumed) => format!("run {}", resumed.run),
        JobEvent::Submitted(_)
        | JobEvent::Completed(_)
        | JobEvent::Suspended
        | JobEvent::PolicyChanged { .. }
        | JobEvent::Redriven { .. }
        | JobEvent::Paused
        | JobEvent::Unpaused { .. }
        | JobEvent::StateImported { .. } => String::new(),
    }
}

fn of_a_step(event: &StepEvent) -> String {
    match event {
        StepEvent::Started { step, start } => match start {
            Some(start) => format!("{step}, items by {start}"),
            None => format!("{step}"),
        },
        StepEvent::Completed { step } | StepEvent::Failed { step } => format!("{step}"),
        StepEvent::ItemsRead { step, items, .. } => format!("{step}: {}", items.len()),
        StepEvent::InputFailed { step, reason, .. } => format!("{step}: {reason}"),
        StepEvent::CompletionReached(reached) => {
            let completion = reached.completion();
            let met = if completion.success { "met" } else { "missed" };
            format!("{}: {}, {met}", reached.step, completion.reason)
        }
        StepEvent::Skipped { .. } | StepEvent::Unreachable { .. } | StepEvent::AttributeSet { .. } => {
            String::new()
        }
    }
}

fn of_an_item(event: &ItemEvent) -> String {
    match event {
        ItemEvent::AttemptStarted(started) => {
            let pass = started.pass.as_ref();
            let probe = pass.is_some_and(|pass| pass.probe);
            let probe = if probe { ", a probe" } else { "" };
            format!("{} as {}{probe}", attempt(started.of), started.start)
        }
        ItemEvent::AttemptSucceeded(done) => before(done.of, done.next),
        ItemEvent::AttemptFailed(failed) => format!("{} {:?}", attempt(failed.of), failed.cause),
        ItemEvent::RetryScheduled(retrying) => {
            format!("{} in {:?} at {}", attempt(retrying.of), retrying.delay, since(retrying.due))
        }
        ItemEvent::CommandStopped(stopped) => {
            let (of, reason) = (attempt(stopped.of), stopped.reason);
            match stopped.handler {
                Some(handler) => format!("{of}: {reason}, handler {handler}"),
                None => format!("{of}: {reason}"),
            }
        }
        ItemEvent::CommandRepeated { of } => attempt(*of),
        ItemEvent::CommandRecovered { of, next } => before(*of, *next),
        ItemEvent::Succeeded { step, index }
        | ItemEvent::Redriven { step, index }
        | ItemEvent::Dropped { step, index } => place(step.item(*index)),
        ItemEvent::DeadLettered { of, reason, .. } => format!("{}: {reason}", attempt(*of)),
        ItemEvent::Skipped { step, index, reason } => format!("{}: {reason}", place(step.item(*index))),
        ItemEvent::Held(held) => match held.until {
            Some(until) => format!("{} until {}", attempt(held.of), since(until)),
            None => attempt(held.of),
        },
        ItemEvent::Released(released) => {
            format!("{} after {:?}", attempt(released.of), released.held)
        }
        ItemEvent::LateResult(late) => {
            let item = place(late.item());
            match late.reason {
                Some(reason) => format!("{item}: {reason}"),
                None => item,
            }
        }
        ItemEvent::AttemptAccepted { .. } => String::new(),
    }
}

/// An attempt, and the command that comes next.
fn before(of: AttemptId, next: Option<CommandId>) -> String {
    match next {
        Some(next) => format!("{}, next {next}", attempt(of)),
        None => attempt(of),
    }
}
