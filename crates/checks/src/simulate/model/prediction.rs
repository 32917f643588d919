//! What is predicted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::run::{ModelRun, Unspecified};
use crate::simulate::case::JobCase;

/// What must come of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// How the job ends.
    pub end: PredictedJobEnd,
    /// What becomes of every item: of a map by its name, of a list by the name of its command, of a
    /// flow by the name of its step and its number (`w3#0`).
    pub items: BTreeMap<String, PredictedEnd>,
    /// Every command that was attempted for an item.
    pub made: BTreeMap<(String, String), PredictedAttempts>,
    /// Units of the job pool that were charged, if there is a pool.
    pub pool_spent: Option<u32>,
    /// How many dead letters there are.
    pub dead: usize,
}

/// How a job ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PredictedJobEnd {
    /// `completed`, `partial` or `failed`.
    pub status: &'static str,
    /// The words of the reasons that may be given; with none, nothing is said about it.
    pub reasons: BTreeSet<&'static str>,
}

/// What becomes of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredictedEnd {
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
pub struct PredictedAttempts {
    /// How many attempts.
    pub attempts: u32,
    /// When each of them starts, since the submission; empty if that is not known.
    pub starts: Vec<Duration>,
    /// The delay before each retry.
    pub delays: Vec<DelayRange>,
    /// The delays added up since the command's round, or that of its handler, began.
    pub spent: DelayRange,
}

/// A time that is not known exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelayRange {
    /// The shortest it may be.
    pub least: Duration,
    /// The longest.
    pub most: Duration,
}

impl DelayRange {
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

/// What was drawn in a run; or how to guess it, if none is known.
#[derive(Clone, Debug, Default)]
pub struct ObservedChoices {
    /// The delays of each command (`w3`) for each item, in order.
    pub delays: BTreeMap<(String, String), Vec<Duration>>,
    /// When each item was let go by a breaker, since the submission, in order.
    pub releases: BTreeMap<String, Vec<Duration>>,
    /// With nothing seen: where in its range a delay is taken to be, in percent.
    pub fixed_percent: Option<u32>,
}

impl ObservedChoices {
    /// The delay that was drawn.
    pub(super) fn delay(&self, of: &(String, String), place: usize) -> Option<Duration> {
        self.delays.get(of).and_then(|all| all.get(place)).copied()
    }
}

/// Where in its range a drawn delay is taken to be, in percent, when nothing is known about it.
const GUESSES: [u32; 5] = [50, 0, 100, 23, 81];

/// What must come of a case; nothing if that depends on what the semantics leave open, or on what
/// is drawn.
#[must_use]
pub fn predict(case: &JobCase) -> Option<Prediction> {
    let mut whole: Option<Prediction> = None;
    for fixed_percent in GUESSES {
        let choices = ObservedChoices { fixed_percent: Some(fixed_percent), ..ObservedChoices::default() };
        let found = predict_with(case, &choices).ok()?;
        whole = match whole {
            None => Some(found),
            Some(known) => Some(joined(known, &found)?),
        };
    }
    whole
}

/// What must come of a case, given what was drawn.
///
/// # Errors
///
/// What the semantics leave open, so that there is no answer.
pub fn predict_with(case: &JobCase, choices: &ObservedChoices) -> Result<Prediction, Unspecified> {
    ModelRun::new(case, choices).outcome()
}

/// Two predictions as one, if they differ in nothing but delays.
fn joined(known: Prediction, other: &Prediction) -> Option<Prediction> {
    let mut whole = known;
    if whole.made.len() != other.made.len() {
        return None;
    }
    for (key, made) in &mut whole.made {
        let found = other.made.get(key)?;
        if found.attempts != made.attempts || found.delays.len() != made.delays.len() {
            return None;
        }
        let delays = made.delays.iter().zip(&found.delays);
        *made = PredictedAttempts {
            attempts: made.attempts,
            starts: if made.starts == found.starts { found.starts.clone() } else { Vec::new() },
            spent: made.spent.or(found.spent),
            delays: delays.map(|(one, two)| one.or(*two)).collect(),
        };
    }
    let same = whole.end == other.end
        && whole.items == other.items
        && whole.pool_spent == other.pool_spent
        && whole.dead == other.dead;
    same.then_some(whole)
}
