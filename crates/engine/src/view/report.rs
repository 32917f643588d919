//! The result of a job, in one object.

use std::time::Duration;

use serde::{Serialize, Serializer};
use undaunted_policy::Reason;

use crate::event::{Counts, Reached};
use crate::job::{Item, Job, Settled, Stage, StepStage};
use crate::view::attempt::millis;

#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub job: String,
    pub name: Option<String>,
    pub status: Status,
    /// Why it did not simply complete.
    pub reason: Option<Reason>,
    pub error: Option<String>,
    pub counts: Counts,
    /// From its submission to its last event.
    pub duration: Duration,
    pub missing: Vec<Missing>,
    pub reached: Option<Reached>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    pub item: String,
    pub reason: Reason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Running,
    /// Ends once running attempts have ended.
    Stopping,
    /// Left in good order, to be resumed.
    Suspended,
    Completed,
    Partial,
    Failed,
    Cancelled,
}

impl Status {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Suspended => "suspended",
            Self::Completed => "completed",
            Self::Partial => "partial",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl From<Stage> for Status {
    fn from(stage: Stage) -> Self {
        match stage {
            Stage::Running => Self::Running,
            Stage::Stopping(_) => Self::Stopping,
            Stage::Suspended => Self::Suspended,
            Stage::Completed => Self::Completed,
            Stage::Partial => Self::Partial,
            Stage::Failed => Self::Failed,
            Stage::Cancelled => Self::Cancelled,
        }
    }
}

pub fn report(job: &Job) -> Report {
    let status = Status::from(job.stage);
    let failure = job.mishap();
    let mishap = failure.as_ref().or(job.mishaps.recovered.as_ref());
    let reason = match status {
        Status::Failed | Status::Cancelled | Status::Partial | Status::Stopping => job
            .mishaps
            .stopped
            .or_else(|| failure.as_ref().map(|failure| failure.reason))
            .or_else(|| job.first_dead()),
        Status::Running | Status::Suspended | Status::Completed => None,
    };
    Report {
        job: job.id().to_owned(),
        name: job.workflow().name.clone(),
        status,
        reason,
        error: mishap.map(|mishap| job.texts.read(&mishap.error).to_owned()),
        counts: job.tally(),
        duration: job.times.last_at.since(job.times.submitted_at),
        missing: missing(job),
        reached: job.counted().find_map(|(_, step)| step.reached),
    }
}

/// Items never started, and those a step was complete without.
fn missing(job: &Job) -> Vec<Missing> {
    if !job.stage.has_ended() {
        return Vec::new();
    }
    // Commands after a failed one of a list do not begin: a list tolerates no failure.
    let reason = job.mishaps.stopped.unwrap_or(Reason::Tolerance);
    let mut missing = Vec::new();
    for (number, step) in job.counted() {
        let never = matches!(step.stage, StepStage::Waiting | StepStage::Failed);
        if step.items.is_empty() && never && !job.plan().is_map(number) {
            let command = job.plan().first(number);
            let command = command.and_then(|command| job.plan().command(command));
            missing.extend(command.map(|command| Missing {
                item: command.id.clone(),
                reason,
            }));
        }
        let reason = step.reached.map_or(reason, |reached| reached.reason());
        let not_there = step.items.iter().filter_map(|(item, state)| match state {
            Item::Pending => Some((item, reason)),
            Item::Settled(Settled::Missing(reason)) => Some((item, reason)),
            Item::Active(_) | Item::Settled(_) => None,
        });
        missing.extend(not_there.map(|(item, reason)| Missing {
            item: step.items.identity(item).to_owned(),
            reason,
        }));
    }
    missing
}

/// Printed by `run --json`.
#[derive(Serialize)]
struct ReportJson<'r> {
    job: &'r str,
    status: &'static str,
    reason: Option<&'static str>,
    error: Option<&'r str>,
    items: ItemCounts,
    attempts: u64,
    retries: u64,
    delay_ms: u64,
    duration_ms: u64,
    missing: Vec<MissingJson<'r>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ItemCounts {
    total: u64,
    succeeded: u64,
    dead: u64,
    skipped: u64,
}

impl From<&Counts> for ItemCounts {
    fn from(counts: &Counts) -> Self {
        Self {
            total: counts.total,
            succeeded: counts.succeeded,
            dead: counts.dead,
            skipped: counts.skipped,
        }
    }
}

#[derive(Serialize)]
struct MissingJson<'r> {
    item: &'r str,
    reason: &'static str,
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let missing = self.missing.iter().map(|missing| MissingJson {
            item: &missing.item,
            reason: missing.reason.word(),
        });
        ReportJson {
            job: &self.job,
            status: self.status.word(),
            reason: self.reason.map(Reason::word),
            error: self.error.as_deref(),
            items: (&self.counts).into(),
            attempts: self.counts.attempts,
            retries: self.counts.retries,
            delay_ms: millis(self.counts.delay),
            duration_ms: millis(self.duration),
            missing: missing.collect(),
        }
        .serialize(serializer)
    }
}
