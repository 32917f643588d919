//! Events and effects in words, so that a test compares lines a reader understands.

use undaunted_engine::breaker::BreakerChange;
use undaunted_engine::effect::Effect;
use undaunted_engine::event::{Event, Record, Subject};
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
        Effect::Begin { start, step, item } => format!("begin {start} for {step}/{item}"),
        Effect::ReadInput { step, start: None } => format!("read the items of {step}"),
        Effect::ReadInput {
            step,
            start: Some(start),
        } => format!("read the items of {step} by {start}"),
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

/// `step/item command.attempt`.
fn of(subject: Subject) -> String {
    let Subject {
        step,
        item,
        command,
        attempt,
    } = subject;
    format!("{step}/{item} {command}.{attempt}")
}

fn line(event: &Event) -> String {
    let word = event.word();
    let rest = match event {
        Event::StepStarted { step, start } => match start {
            Some(start) => format!("{step}, items by {start}"),
            None => format!("{step}"),
        },
        Event::StepCompleted { step } | Event::StepFailed { step } => format!("{step}"),
        Event::ItemsRead { step, items, .. } => format!("{step}: {}", items.len()),
        Event::InputFailed { step, reason, .. } => format!("{step}: {reason}"),
        Event::TextKept { text } => format!("`{text}`"),
        Event::AttemptStarted(started) => {
            let pass = started.pass.as_ref();
            let probe = pass.is_some_and(|pass| pass.probe);
            let probe = if probe { ", a probe" } else { "" };
            format!("{} as {}{probe}", of(started.subject), started.start)
        }
        Event::AttemptSucceeded(done) => match done.next {
            Some(next) => format!("{}, next {next}", of(done.subject)),
            None => of(done.subject),
        },
        Event::AttemptFailed(failed) => format!("{} {:?}", of(failed.subject), failed.cause),
        Event::RetryScheduled(retrying) => format!(
            "{} in {:?} at {}",
            of(retrying.subject),
            retrying.delay,
            since(retrying.due)
        ),
        Event::CommandStopped(stopped) => match stopped.handler {
            Some(handler) => format!(
                "{}: {}, handler {handler}",
                of(stopped.subject),
                stopped.reason
            ),
            None => format!("{}: {}", of(stopped.subject), stopped.reason),
        },
        Event::CommandRepeated { subject } => of(*subject),
        Event::CommandRecovered { subject, next } => match next {
            Some(next) => format!("{}, next {next}", of(*subject)),
            None => of(*subject),
        },
        Event::ItemSucceeded { step, item }
        | Event::ItemRedriven { step, item }
        | Event::ItemDropped { step, item } => format!("{step}/{item}"),
        Event::ItemDeadLettered {
            subject, reason, ..
        } => format!("{}: {reason}", of(*subject)),
        Event::ItemSkipped { step, item, reason } => format!("{step}/{item}: {reason}"),
        Event::JobStopping { reason } => reason.to_string(),
        Event::JobPartial(_) => "partial".to_owned(),
        Event::JobFailed(ended) | Event::JobCancelled(ended) => {
            ended.reason.map_or_else(String::new, |it| it.to_string())
        }
        Event::Held(held) => match held.until {
            Some(until) => format!("{} until {}", of(held.subject), since(until)),
            None => of(held.subject),
        },
        Event::Released(released) => format!("{} after {:?}", of(released.subject), released.held),
        Event::CompletionReached(reached) => {
            let completion = reached.completion();
            let met = if completion.success { "met" } else { "missed" };
            format!("{}: {}, {met}", reached.step, completion.reason)
        }
        Event::LateResult(late) => match late.reason {
            Some(reason) => format!("{}/{}: {reason}", late.step, late.item),
            None => format!("{}/{}", late.step, late.item),
        },
        Event::PoolToppedUp { added, total, .. } => format!("by {added} to {total}"),
        Event::JobResumed(resumed) => format!("run {}", resumed.run),
        _ => String::new(),
    };
    format!("{word} {rest}").trim_end().to_owned()
}
