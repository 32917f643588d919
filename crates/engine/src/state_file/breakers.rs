//! The breakers of the file, in both directions.
//!
//! Breakers are shared by all jobs of a store, so an imported state is only a claim: it is taken if it is more cautious
//! than the state that the breaker has.

use std::collections::BTreeMap;

use undaunted_policy::{BreakerSettings, CircuitState, Timestamp};

use super::importing::ImportError;
use super::shape::{CircuitBreakerState, DurationText, InstantText, RetryCheckpointState};
use crate::breaker::{BreakerFact, BreakerState};
use crate::job::Job;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedBreaker {
    pub name: String,
    /// By the workflow.
    pub settings: BreakerSettings,
    circuit: CircuitState,
    failures: u32,
    last_failure_at: Option<Timestamp>,
}

impl ImportedBreaker {
    /// The fact that restores it, unless the breaker is in a state that is as cautious.
    pub fn fact(&self, known: &BreakerState, at: Timestamp) -> Option<BreakerFact> {
        let caution = |circuit: CircuitState| match circuit {
            CircuitState::Closed { failures } => (0, u64::from(failures)),
            CircuitState::HalfOpen { .. } => (1, 0),
            CircuitState::Open { until, .. } => (2, until.as_nanos()),
        };
        let more = caution(self.circuit) > caution(known.breaker.circuit());
        more.then_some(BreakerFact::Restored {
            at,
            circuit: self.circuit,
            failures: self.failures,
            last_failure_at: self.last_failure_at,
        })
    }
}

/// Adds a note for each breaker whose settings the workflow has changed.
pub(super) fn breakers(
    file: &RetryCheckpointState,
    job: &Job,
    notes: &mut Vec<String>,
) -> Result<Vec<ImportedBreaker>, ImportError> {
    let known = job.plan().breakers();
    let mut imported = Vec::new();
    for (key, state) in &file.circuit_breaker_states {
        if !matches!(state.state.as_str(), "" | "Closed" | "Open" | "HalfOpen") {
            return Err(ImportError::BreakerState { key: key.clone(), state: state.state.clone() });
        }
        let Some((name, settings)) = named(key, job, &known) else {
            // A closed breaker without failures changes nothing.
            if matches!(state.state.as_str(), "" | "Closed") && state.failure_count == 0 {
                continue;
            }
            return Err(ImportError::Breaker { key: key.clone() });
        };
        if has_other_settings(state, &settings) {
            notes.push(format!("breaker `{key}` had other settings; those of the workflow apply"));
        }
        imported.push(ImportedBreaker {
            circuit: circuit(state, &settings, job.times.submitted_at),
            name,
            settings,
            failures: state.failure_count,
            last_failure_at: state.last_failure_at.map(|at| at.0),
        });
    }
    Ok(imported)
}

fn has_other_settings(state: &CircuitBreakerState, ours: &BreakerSettings) -> bool {
    state.failure_threshold.is_some_and(|theirs| theirs != ours.failure_threshold)
        || state.half_open_max_calls.is_some_and(|theirs| theirs != ours.half_open_max_calls)
        || state.recovery_timeout.is_some_and(|theirs| theirs.0 != ours.recovery_timeout)
}

/// The breaker that a key means: its own name, a command that has one, or the origin of requests.
fn named(
    key: &str,
    job: &Job,
    known: &BTreeMap<String, BreakerSettings>,
) -> Option<(String, BreakerSettings)> {
    if let Some(settings) = known.get(key) {
        return Some((key.to_owned(), *settings));
    }
    // Other systems name a breaker after its command.
    let mut numbers = job.plan().numbered().filter(|(_, command)| command.id == *key);
    if let Some(name) = numbers.find_map(|(number, _)| job.breaker_of(number)) {
        return Some((name.to_owned(), known.get(name).copied().unwrap_or_default()));
    }
    let mut unnamed = job.plan().commands().filter_map(|command| command.breaker.as_deref());
    let of_origin = unnamed.find(|breaker| breaker.name.is_none() && key.contains("://"))?;
    Some((key.to_owned(), of_origin.settings))
}

fn circuit(state: &CircuitBreakerState, settings: &BreakerSettings, now: Timestamp) -> CircuitState {
    match state.state.as_str() {
        "Open" => {
            let since = state.opened_at.or(state.last_failure_at).map_or(now, |at| at.0);
            // A wait that has begun keeps its end, whatever the workflow says about later ones.
            let timeout = state.recovery_timeout.map_or(settings.recovery_timeout, |timeout| timeout.0);
            let until = state.next_attempt_at.map_or_else(|| since.after(timeout), |at| at.0);
            CircuitState::Open { since, until }
        }
        "HalfOpen" => CircuitState::HalfOpen { successes: state.success_count, probing: false },
        _ => CircuitState::Closed { failures: state.failure_count },
    }
}

impl From<&BreakerState> for CircuitBreakerState {
    fn from(known: &BreakerState) -> Self {
        let (word, success_count, open) = match known.breaker.circuit() {
            CircuitState::Closed { .. } => ("Closed", 0, None),
            CircuitState::Open { since, until } => ("Open", 0, Some((since, until))),
            CircuitState::HalfOpen { successes, .. } => ("HalfOpen", successes, None),
        };
        Self {
            state: word.to_owned(),
            failure_count: known.failure_count(),
            failure_threshold: Some(known.settings.failure_threshold),
            last_failure_at: known.last_failure_at.map(InstantText),
            recovery_timeout: Some(DurationText(known.settings.recovery_timeout)),
            half_open_max_calls: Some(known.settings.half_open_max_calls),
            success_count,
            opened_at: open.map(|(since, _)| InstantText(since)),
            next_attempt_at: open.map(|(_, until)| InstantText(until)),
        }
    }
}
