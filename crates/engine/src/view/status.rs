//! The status of a job and of its items.

use serde::{Serialize, Serializer};
use undaunted_policy::Reason;

use super::job::StageView;
use super::report::{JobStatus, never_started};
use crate::id::ItemId;
use crate::job::{Activity, ItemState, Job, SettledItem};

/// A [`JobStatus`] that also tells whether a process owns the job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LiveJobStatus {
    Paused,
    /// The job should run, but its process has died.
    Interrupted,
    #[default]
    Unreadable,
    /// The status in the journal.
    As(JobStatus),
}

impl LiveJobStatus {
    pub fn of(job: &Job, is_owned: bool) -> Self {
        match JobStatus::from(job.stage) {
            JobStatus::Running | JobStatus::Suspended if job.times.paused.is_some() => Self::Paused,
            JobStatus::Running | JobStatus::Stopping if !is_owned => Self::Interrupted,
            status => Self::As(status),
        }
    }

    pub const fn word(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::Interrupted => "interrupted",
            Self::Unreadable => "unreadable",
            Self::As(status) => status.word(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemStatus {
    Pending,
    Running,
    Waiting,
    Held,
    Succeeded,
    Dead(Reason),
    Skipped(Reason),
    /// The step was complete without the item, or the job ended before it was started.
    Missing(Reason),
}

impl ItemStatus {
    pub fn of(job: &Job, item: ItemId) -> Self {
        match job.item(item) {
            None | Some(ItemState::Pending) => never_started(job, item).map_or(Self::Pending, Self::Missing),
            Some(ItemState::Active(active)) => match active.activity {
                Activity::Running(_) => Self::Running,
                Activity::Waiting(_) | Activity::Undecided => Self::Waiting,
                Activity::Held => Self::Held,
            },
            Some(ItemState::Settled(SettledItem::Succeeded)) => Self::Succeeded,
            Some(ItemState::Settled(SettledItem::Dead(reason))) => Self::Dead(reason),
            Some(ItemState::Settled(SettledItem::Skipped(reason))) => Self::Skipped(reason),
            Some(ItemState::Settled(SettledItem::Missing(reason))) => Self::Missing(reason),
        }
    }

    pub const fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Held => "held",
            Self::Succeeded => "succeeded",
            Self::Dead(_) => "dead",
            Self::Skipped(_) => "skipped",
            Self::Missing(_) => "missing",
        }
    }

    pub const fn reason(self) -> Option<Reason> {
        match self {
            Self::Dead(reason) | Self::Skipped(reason) | Self::Missing(reason) => Some(reason),
            Self::Pending | Self::Running | Self::Waiting | Self::Held | Self::Succeeded => None,
        }
    }
}

/// In JSON, each of these is its word.
macro_rules! serialize_as_word {
    ($($status:ty),*) => {
        $(impl Serialize for $status {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        })*
    };
}

serialize_as_word!(ItemStatus, JobStatus, LiveJobStatus, StageView);
