//! What is predicted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What must come of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// How the job ends.
    pub end: JobEnd,
    /// What becomes of every item: of a map by its name, of a list by the name of its command, of a
    /// flow by the name of its step and its number (`w3#0`).
    pub items: BTreeMap<String, Fate>,
    /// Every command that was attempted for an item.
    pub made: BTreeMap<(String, String), Made>,
    /// Units of the job pool that were charged, if there is a pool.
    pub pool_spent: Option<u32>,
    /// How many dead letters there are.
    pub dead: usize,
}

/// How a job ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEnd {
    /// `completed`, `partial` or `failed`.
    pub status: &'static str,
    /// The words of the reasons that may be given; with none, nothing is said about it.
    pub reasons: BTreeSet<&'static str>,
}

/// What becomes of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is done.
    Succeeded,
    /// It is a dead letter, for this reason.
    Dead(&'static str),
    /// It is not gone on with.
    Skipped,
    /// It was never started, or its step was complete without it.
    Missing,
}

/// What was done of one command for one item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// How many attempts.
    pub attempts: u32,
    /// When each of them starts, since the submission; empty if that is not known.
    pub starts: Vec<Duration>,
    /// The delay before each retry.
    pub delays: Vec<Range>,
    /// The delays added up since the command's round, or that of its handler, began.
    pub spent: Range,
}

/// A time that is not known exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The shortest it may be.
    pub least: Duration,
    /// The longest.
    pub most: Duration,
}

impl Range {
    /// A time that is known.
    #[must_use]
    pub const fn exactly(time: Duration) -> Self {
        Self { least: time, most: time }
    }

    /// Whether it is known exactly.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.least == self.most
    }

    /// Whether a time is in it. A drawn one may be rounded by a millisecond.
    #[must_use]
    pub fn holds(&self, time: Duration) -> bool {
        let grain = if self.is_exact() { Duration::ZERO } else { Duration::from_millis(1) };
        let least = self.least.saturating_sub(grain);
        least <= time && time <= self.most.saturating_add(grain)
    }

    /// At least so much.
    #[must_use]
    pub fn at_least(self, time: Duration) -> Self {
        Self { least: self.least.max(time), most: self.most.max(time) }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { least: self.least.saturating_add(other.least), most: self.most.saturating_add(other.most) }
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.max(other.most) }
    }
}
