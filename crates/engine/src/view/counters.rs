//! The counters of a job, which metrics are made of.
//!
//! They are sums and last values only, so that counters of several jobs can be added.

use std::collections::BTreeMap;
use std::time::Duration;

use minicbor::{Decode, Encode};
use serde::{Serialize, Serializer};
use undaunted_policy::{FailureCause, FailureClass, Reason};

use crate::event::{AttemptFailed, Event, ItemEvent, Record, StepEvent, codec};
use crate::job::Job;

/// Upper bounds of the delays in each bucket. The last bucket, of longer delays, has none.
pub const DELAY_BOUNDS: [Duration; 12] = [
    Duration::from_millis(10),
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_mins(1),
    Duration::from_mins(5),
    Duration::from_mins(30),
    Duration::from_hours(2),
];

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Encode, Decode)]
pub struct JobCounters {
    /// Attempts that have ended, by outcome.
    #[n(0)]
    pub attempts: BTreeMap<String, u64>,
    #[n(1)]
    pub retries_scheduled: u64,
    #[n(2)]
    pub delays: DelayCounts,
    /// Retries charged to the pool.
    #[n(3)]
    pub retries_charged: u32,
    /// Retries that the pool has refused.
    #[n(4)]
    pub retries_refused: u64,
    /// Completions by a rule, by reason.
    #[n(5)]
    pub completions: BTreeMap<String, u64>,
    #[n(6)]
    pub last_completion: Option<CompletionShare>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Encode, Decode)]
pub struct DelayCounts {
    /// Not cumulative.
    #[n(0)]
    pub counts: [u64; DELAY_BOUNDS.len() + 1],
    /// In seconds in JSON.
    #[n(1)]
    #[cbor(with = "codec::span")]
    #[serde(serialize_with = "seconds")]
    pub sum: Duration,
}

/// The items that had succeeded when a rule completed their step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Encode, Decode)]
pub struct CompletionShare {
    #[n(0)]
    pub completed: u64,
    #[n(1)]
    pub target: u64,
}

impl JobCounters {
    /// Counts a record. The job has applied it, and perhaps later ones.
    pub fn take(&mut self, job: &Job, record: &Record) {
        if let Some(pool) = &job.pool {
            self.retries_charged = self.retries_charged.max(pool.consumed);
        }
        match &record.event {
            Event::Item(event) => self.fold_item_event(event),
            Event::Step(StepEvent::CompletionReached(reached)) => {
                count(&mut self.completions, reached.completion().reason.word());
                self.last_completion =
                    Some(CompletionShare { completed: reached.completed, target: reached.target });
            }
            Event::Step(
                StepEvent::Started { .. }
                | StepEvent::ItemsRead { .. }
                | StepEvent::InputFailed { .. }
                | StepEvent::Completed { .. }
                | StepEvent::Failed { .. }
                | StepEvent::Skipped { .. }
                | StepEvent::Unreachable { .. }
                | StepEvent::AttributeSet { .. },
            )
            | Event::Job(_)
            | Event::Breaker(_) => {}
        }
    }

    fn fold_item_event(&mut self, event: &ItemEvent) {
        match event {
            ItemEvent::AttemptSucceeded(_) => count(&mut self.attempts, "succeeded"),
            ItemEvent::AttemptFailed(failed) => count(&mut self.attempts, outcome(failed)),
            ItemEvent::RetryScheduled(retrying) => {
                self.retries_scheduled = self.retries_scheduled.saturating_add(1);
                self.delays.take(retrying.delay);
            }
            ItemEvent::CommandStopped(stopped) => {
                let pool = [Reason::JobBudgetExhausted, Reason::WorkflowBudgetExhausted];
                if pool.contains(&stopped.reason) {
                    self.retries_refused = self.retries_refused.saturating_add(1);
                }
            }
            ItemEvent::AttemptStarted(_)
            | ItemEvent::AttemptAccepted { .. }
            | ItemEvent::CommandRepeated { .. }
            | ItemEvent::CommandRecovered { .. }
            | ItemEvent::Succeeded { .. }
            | ItemEvent::DeadLettered { .. }
            | ItemEvent::Skipped { .. }
            | ItemEvent::Redriven { .. }
            | ItemEvent::Dropped { .. }
            | ItemEvent::Held(_)
            | ItemEvent::Released(_)
            | ItemEvent::LateResult(_) => {}
        }
    }
}

impl DelayCounts {
    fn take(&mut self, delay: Duration) {
        let shorter = DELAY_BOUNDS.partition_point(|bound| *bound < delay);
        if let Some(count) = self.counts.get_mut(shorter) {
            *count = count.saturating_add(1);
        }
        self.sum = self.sum.saturating_add(delay);
    }
}

impl CompletionShare {
    #[expect(clippy::cast_precision_loss, reason = "a share of more than 2^53 items need not be exact")]
    pub fn ratio(self) -> f64 {
        if self.target == 0 { 1.0 } else { self.completed as f64 / self.target as f64 }
    }
}

fn count(counts: &mut BTreeMap<String, u64>, word: &str) {
    match counts.get_mut(word) {
        Some(many) => *many = many.saturating_add(1),
        None => drop(counts.insert(word.to_owned(), 1)),
    }
}

fn outcome(failed: &AttemptFailed) -> &'static str {
    match (failed.cause, failed.class) {
        (FailureCause::Timeout, _) => "timeout",
        (FailureCause::Interrupted, _) => "interrupted",
        (_, FailureClass::Transient) => "transient",
        (_, FailureClass::Throttled) => "throttled",
        (_, FailureClass::Permanent) => "permanent",
    }
}

fn seconds<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(span.as_secs_f64())
}
