//! The counters of a job, which metrics are made of.
//!
//! They are sums and last values only, so that counters of several jobs can be added.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Serialize, Serializer};
use undaunted_policy::{FailureCause, FailureClass, Reason};

use crate::event::{AttemptFailed, Event, ItemEvent, Record, StepEvent, codec};
use crate::job::Job;
use crate::stored::stored;

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

stored! {
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
    pub struct JobCounters {
        /// Attempts that have ended, by outcome.
        pub attempts: BTreeMap<String, u64> = 0,
        pub retries_scheduled: u64 = 1,
        pub delays: DelayCounts = 2,
        /// Retries charged to the pool.
        pub retries_charged: u32 = 3,
        /// Retries that the pool has refused.
        pub retries_refused: u64 = 4,
        /// Completions by a rule, by reason.
        pub completions: BTreeMap<String, u64> = 5,
        pub last_completion: Option<CompletionShare> = 6,
    }

    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
    pub struct DelayCounts {
        /// Not cumulative.
        pub counts: [u64; DELAY_BOUNDS.len() + 1] = 0,
        /// In seconds in JSON.
        #[serde(serialize_with = "seconds")]
        pub sum: Duration = 1 with "codec::span",
    }

    /// The items that had succeeded when a rule completed their step.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    pub struct CompletionShare {
        pub completed: u64 = 0,
        pub target: u64 = 1,
    }
}

impl JobCounters {
    /// Counts a record. The job has applied it, and perhaps later ones.
    pub fn take(&mut self, job: &Job, record: &Record) {
        if let Some(pool) = &job.pool {
            self.retries_charged = self.retries_charged.max(pool.consumed);
        }
        if let Event::Item(event) = &record.event {
            self.fold_item_event(event);
        }
        if let Event::Step(StepEvent::CompletionReached(reached)) = &record.event {
            count(&mut self.completions, reached.completion().reason.word());
            self.last_completion =
                Some(CompletionShare { completed: reached.completed, target: reached.target });
        }
    }

    fn fold_item_event(&mut self, event: &ItemEvent) {
        if let ItemEvent::AttemptSucceeded(_) = event {
            count(&mut self.attempts, "succeeded");
        } else if let ItemEvent::AttemptFailed(failed) = event {
            count(&mut self.attempts, outcome(failed));
        } else if let ItemEvent::RetryScheduled(retrying) = event {
            self.retries_scheduled = self.retries_scheduled.saturating_add(1);
            self.delays.take(retrying.delay);
        } else if let ItemEvent::CommandStopped(stopped) = event
            && matches!(stopped.reason, Reason::JobBudgetExhausted | Reason::WorkflowBudgetExhausted)
        {
            self.retries_refused = self.retries_refused.saturating_add(1);
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
