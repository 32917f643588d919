//! What a job has come to, in one object.

use std::time::Duration;

use serde::{Serialize, Serializer};
use undaunted_policy::Reason;

use crate::event::{Counts, Reached};
use crate::job::{Item, Job, Settled, Stage, StepStage};
use crate::view::attempt::millis;

/// What a job has come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub job: String,
    /// The name of its workflow, if it has one.
    pub name: Option<String>,
    pub status: Status,
    /// Why it did not simply complete.
    pub reason: Option<Reason>,
    /// What people read about it.
    pub error: Option<String>,
    /// Items, attempts, retries and delays.
    pub counts: Counts,
    /// From its submission to its last event.
    pub duration: Duration,
    /// Items that were never started or not waited for, and why.
    pub missing: Vec<Missing>,
    /// What a completion rule has decided, if one has.
    pub reached: Option<Reached>,
}

/// An item that was never started, or that its step was complete without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// What it is called.
    pub item: String,
    pub reason: Reason,
}

/// How a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It is not done.
    Running,
    /// It ends as soon as what runs has ended.
    Stopping,
    /// It was left in good order.
    Suspended,
    Completed,
    /// It is done, with dead letters.
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

/// What a job has come to so far.
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

/// What was never started and will not be, and what a step was complete without.
fn missing(job: &Job) -> Vec<Missing> {
    if !job.stage.has_ended() {
        return Vec::new();
    }
    // What comes after a failed command of a list is not begun: one failure is all it tolerates.
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

/// The shape of the object that `run --json` prints.
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

/// How many items there are and what became of them, as every report has it.
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
