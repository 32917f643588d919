//! The status of a job and its items, seen from outside.

use serde::{Serialize, Serializer};
use undaunted_policy::Reason;

use super::report::{Status, never_started};
use crate::id::ItemId;
use crate::job::{Doing, Item, Job, Settled};

/// Unlike [`Status`], knows whether a process owns the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobStanding {
    Paused,
    /// It should run, but its process has died.
    Interrupted,
    Unreadable,
    /// As in its journal.
    As(Status),
}

impl JobStanding {
    pub fn of(job: &Job, is_owned: bool) -> Self {
        match Status::from(job.stage) {
            Status::Running | Status::Suspended if job.times.paused.is_some() => Self::Paused,
            Status::Running | Status::Stopping if !is_owned => Self::Interrupted,
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

impl Serialize for JobStanding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

impl Serialize for ItemStanding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemStanding {
    Pending,
    Running,
    Waiting,
    Held,
    Succeeded,
    Dead(Reason),
    Skipped(Reason),
    /// Its step was complete without it, or the job has ended before it was started.
    Missing(Reason),
}

impl ItemStanding {
    pub fn of(job: &Job, item: ItemId) -> Self {
        match job.item(item) {
            None => Self::Pending,
            Some(Item::Pending) => never_started(job, item).map_or(Self::Pending, Self::Missing),
            Some(Item::Active(active)) => match active.doing {
                Doing::Running(_) => Self::Running,
                Doing::Waiting(_) | Doing::Undecided => Self::Waiting,
                Doing::Held => Self::Held,
            },
            Some(Item::Settled(Settled::Succeeded)) => Self::Succeeded,
            Some(Item::Settled(Settled::Dead(reason))) => Self::Dead(reason),
            Some(Item::Settled(Settled::Skipped(reason))) => Self::Skipped(reason),
            Some(Item::Settled(Settled::Missing(reason))) => Self::Missing(reason),
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
