//! Predictions.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::run::{ModelRun, Unspecified};
use crate::simulate::case::JobCase;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prediction {
    pub end: PredictedJobEnd,
    /// By name: of an item in a map, of a command in a list, of a step and its item in a flow (`w3#0`).
    pub items: BTreeMap<String, PredictedEnd>,
    /// By command and item.
    pub made: BTreeMap<(String, String), PredictedAttempts>,
    /// Charged retries, if there is a pool.
    pub pool_spent: Option<u32>,
    pub dead: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PredictedJobEnd {
    /// `completed`, `partial` or `failed`.
    pub status: &'static str,
    /// The reasons that may be given; empty if none is expected.
    pub reasons: BTreeSet<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredictedEnd {
    Succeeded,
    Dead(&'static str),
    Skipped,
    /// Never started, or left behind by a completion rule.
    Missing,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PredictedAttempts {
    pub attempts: u32,
    /// Since the submission; empty if they are not known.
    pub starts: Vec<Duration>,
    pub delays: Vec<DelayRange>,
    /// The sum of delays since the command's round, or that of its handler, began.
    pub spent: DelayRange,
}

/// A duration that is known up to a random choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelayRange {
    pub least: Duration,
    pub most: Duration,
}

impl DelayRange {
    pub const fn exactly(time: Duration) -> Self {
        Self { least: time, most: time }
    }

    pub fn is_exact(&self) -> bool {
        self.least == self.most
    }

    /// Whether a delay lies in the range. A random one may be rounded by a millisecond.
    pub fn holds(&self, time: Duration) -> bool {
        let grain = if self.is_exact() { Duration::ZERO } else { Duration::from_millis(1) };
        let least = self.least.saturating_sub(grain);
        least <= time && time <= self.most.saturating_add(grain)
    }

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

/// The random choices of a run, or how to guess them.
///
/// The semantics give a range for a delay and spread releases. The model takes what was chosen from the run,
/// and only that.
#[derive(Clone, Debug, Default)]
pub struct ObservedChoices {
    /// By command (`w3`) and item, in order.
    pub delays: BTreeMap<(String, String), Vec<Duration>>,
    /// When each item was released, since the submission, in order.
    pub releases: BTreeMap<String, Vec<Duration>>,
    /// Without observations: where in its range a delay is assumed, in percent.
    pub fixed_percent: Option<u32>,
}

impl ObservedChoices {
    pub(super) fn delay(&self, of: &(String, String), place: usize) -> Option<Duration> {
        self.delays.get(of).and_then(|all| all.get(place)).copied()
    }
}

/// Where in its range a delay is assumed when nothing is observed, in percent.
const GUESSES: [u32; 5] = [50, 0, 100, 23, 81];

/// The prediction of a case; `None` if it depends on something unspecified or random.
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

/// The prediction of a case, given its random choices.
pub fn predict_with(case: &JobCase, choices: &ObservedChoices) -> Result<Prediction, Unspecified> {
    ModelRun::new(case, choices).outcome()
}

/// The union of two predictions that differ in delays only.
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
