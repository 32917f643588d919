//! Replays decisions.
//!
//! Every decision after a failure must follow from the journal alone: from the state before it, and from what
//! is recorded of the failure.

use std::time::Duration;

use undaunted_engine::decide::decide;
use undaunted_engine::event::{
    AttemptFailed, AttemptId, BreakerEvent, Event, ItemEvent, JobEvent, Record, TimeLimitKind,
};
use undaunted_engine::id::StartId;
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::Job;
use undaunted_policy::FailureCause;

/// The last failure, with the state before it.
#[derive(Default)]
pub(super) struct DecisionReplay {
    before: Option<Box<(Job, Record, StartId)>>,
}

impl DecisionReplay {
    /// Checks a record, given the state before it. Returns a decision that would be different.
    pub(super) fn check(&mut self, job: &Job, record: &Record) -> Option<String> {
        match &record.event {
            Event::Item(ItemEvent::AttemptFailed(failed)) => {
                let place = failed.of.item();
                let mut running = job.starts.running.iter();
                let start = running.find(|(_, at)| **at == place).map(|(start, _)| *start);
                self.before = start.map(|start| Box::new((job.clone(), record.clone(), start)));
                None
            }
            Event::Job(JobEvent::TextKept { .. })
            | Event::Breaker(BreakerEvent::Opened(_) | BreakerEvent::Closed { .. }) => None,
            Event::Item(ItemEvent::RetryScheduled(recorded)) => {
                let sum = &recorded.arithmetic;
                let at_once = sum.computed.is_none();
                let events = self.decided(recorded.of, sum.retry_after, at_once)?;
                let same = events.contains(&record.event);
                (!same).then(|| format!("recorded is {recorded:?}, decided again {events:?}"))
            }
            Event::Item(ItemEvent::CommandStopped(recorded)) => {
                let asked = recorded.arithmetic.and_then(|sum| sum.retry_after);
                let events = self.decided(recorded.of, asked, false)?;
                let same = events.iter().any(|event| {
                    matches!(event, Event::Item(ItemEvent::CommandStopped(it)) if it.reason == recorded.reason)
                });
                (!same).then(|| format!("recorded is {recorded:?}, decided again {events:?}"))
            }
            _ => {
                self.before = None;
                None
            }
        }
    }

    /// What is decided after the last failure, if it was a failure of this attempt.
    fn decided(&mut self, of: AttemptId, retry_after: Option<Duration>, at_once: bool) -> Option<Vec<Event>> {
        let (job, record, start) = *self.before.take()?;
        let Event::Item(ItemEvent::AttemptFailed(failed)) = &record.event else {
            return None;
        };
        let end = AttemptEnd { retry_after, at_once, ..end_of(&job, failed, start) };
        let mut events = decide(&job, &Input::Ended(Box::new(end.clone())), record.at);
        // A job that its deadline stops interrupts its attempts; the record says that the deadline ended them,
        // as it does if the keeper was faster.
        if failed.limit.is_some_and(|limit| limit.kind == TimeLimitKind::Deadline) {
            let end = AttemptEnd { failure: Some(FailureCause::Interrupted), ..end };
            events.extend(decide(&job, &Input::Ended(Box::new(end)), record.at));
        }
        (failed.of == of).then_some(events)
    }
}

fn end_of(job: &Job, failed: &AttemptFailed, start: StartId) -> AttemptEnd {
    AttemptEnd {
        start,
        failure: Some(failed.cause),
        took: failed.took,
        output: failed.output.clone(),
        error: failed.error.as_ref().map(|text| job.texts.read(text).to_owned()).unwrap_or_default(),
        stdout: failed.stdout,
        stderr: failed.stderr,
        ..AttemptEnd::default()
    }
}
