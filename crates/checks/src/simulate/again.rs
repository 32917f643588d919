//! Decisions, taken again.
//!
//! Whatever was decided after a failure must follow from the journal alone: from the state the records
//! before it come to, and from what is recorded of the failure.

use undaunted_engine::decide::decide;
use undaunted_engine::event::{Event, Failed, Record};
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::Job;

/// The last failure, and the state before it.
#[derive(Default)]
pub(super) struct Again {
    before: Option<Box<(Job, Record, u64)>>,
}

impl Again {
    /// Looks at a record, given the state before it. What would have been decided otherwise.
    pub(super) fn look(&mut self, job: &Job, record: &Record) -> Option<String> {
        match &record.event {
            Event::AttemptFailed(failed) => {
                let place = (failed.subject.step, failed.subject.item);
                let mut running = job.running.iter();
                let start = running
                    .find(|(_, at)| **at == place)
                    .map(|(start, _)| *start);
                self.before = start.map(|start| Box::new((job.clone(), record.clone(), start)));
                None
            }
            Event::TextKept { .. } | Event::BreakerOpened(_) | Event::BreakerClosed { .. } => None,
            Event::RetryScheduled(recorded) => {
                let before = self.before.take()?;
                let Event::AttemptFailed(failed) = &before.1.event else {
                    return None;
                };
                if failed.subject != recorded.subject {
                    return None;
                }
                let mut end = end_of(&before.0, failed, before.2);
                end.retry_after = recorded.sum.retry_after;
                end.at_once = recorded.sum.computed.is_none();
                let events = decide(&before.0, &Input::Ended(Box::new(end)), before.1.at);
                let decided = events.iter().find_map(|event| match event {
                    Event::RetryScheduled(retrying) => Some(retrying),
                    _ => None,
                });
                let same = decided.is_some_and(|decided| **decided == **recorded);
                (!same).then(|| format!("recorded is {recorded:?}, decided again {decided:?}"))
            }
            Event::CommandStopped(recorded) => {
                let before = self.before.take()?;
                let Event::AttemptFailed(failed) = &before.1.event else {
                    return None;
                };
                if failed.subject != recorded.subject {
                    return None;
                }
                let mut end = end_of(&before.0, failed, before.2);
                end.retry_after = recorded.sum.and_then(|sum| sum.retry_after);
                let events = decide(&before.0, &Input::Ended(Box::new(end)), before.1.at);
                let decided = events.iter().find_map(|event| match event {
                    Event::CommandStopped(stopped) => Some(stopped.reason),
                    _ => None,
                });
                let same = decided == Some(recorded.reason);
                (!same).then(|| format!("recorded is {recorded:?}, decided again {decided:?}"))
            }
            _ => {
                self.before = None;
                None
            }
        }
    }
}

fn end_of(job: &Job, failed: &Failed, start: u64) -> AttemptEnd {
    AttemptEnd {
        start,
        failure: Some(failed.cause),
        took: failed.took,
        output: failed.output.clone(),
        error: failed
            .error
            .as_ref()
            .map(|text| job.texts.read(text).to_owned())
            .unwrap_or_default(),
        stdout: failed.stdout,
        stderr: failed.stderr,
        ..AttemptEnd::default()
    }
}
