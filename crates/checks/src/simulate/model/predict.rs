//! The prediction: what comes of a case whatever is drawn in it, if that is the same.

use super::prediction::{Made, Prediction};
use super::run::{Open, Run};
use super::seen::Seen;
use crate::simulate::case::Case;

/// Where in its range a drawn delay is taken to be, in percent, when nothing is known about it.
const GUESSES: [u32; 5] = [50, 0, 100, 23, 81];

/// What must come of a case; nothing if that depends on what the semantics leave open, or on what
/// is drawn.
#[must_use]
pub fn predict(case: &Case) -> Option<Prediction> {
    let mut whole: Option<Prediction> = None;
    for guess in GUESSES {
        let seen = Seen { guess: Some(guess), ..Seen::default() };
        let found = predict_seen(case, &seen).ok()?;
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
pub fn predict_seen(case: &Case, seen: &Seen) -> Result<Prediction, Open> {
    Run::new(case, seen).outcome()
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
        *made = Made {
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
