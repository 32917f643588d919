//! Breakers: their state, their changes, and their transitions among the events of a job.

use serde::Serialize;
use serde_json::Value;
use undaunted_policy::spelling::format_duration;
use undaunted_policy::{BreakerSettings, CircuitState, WhenOpen};

use super::event::EventView;
use super::time::{InstantView, rfc3339};
use crate::breaker::{BreakerChange, BreakerChangeKind, BreakerJournal, BreakerState};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BreakerView {
    pub breaker: String,
    pub state: &'static str,
    /// Failures in a row while it is closed.
    pub failures: u32,
    /// Successful probes while it is half open.
    pub successes: u32,
    pub opened_at: Option<InstantView>,
    /// The earliest instant of the next probe.
    pub until: Option<InstantView>,
    pub probe: Option<ProbeView>,
    pub settings: BreakerSettingsView,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProbeView {
    pub job: String,
    pub since: InstantView,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BreakerSettingsView {
    pub failure_threshold: u32,
    pub recovery_timeout: String,
    pub half_open_max_calls: u32,
    pub when_open: &'static str,
    pub max_hold: Option<String>,
}

/// A breaker with all its changes, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BreakerHistoryView {
    #[serde(flatten)]
    pub current: BreakerView,
    pub history: Vec<BreakerChangeView>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BreakerChangeView {
    /// The number of the record in the breaker's journal.
    pub seq: Option<u64>,
    pub at: InstantView,
    pub change: &'static str,
    /// Null for a change by an operator.
    pub job: Option<String>,
    /// The state after the change.
    pub state: &'static str,
    pub failures: u32,
    pub successes: u32,
    /// By the settings of that time: the failures that open it, or the successes that close it.
    pub needed: u32,
    pub until: Option<InstantView>,
}

impl BreakerView {
    pub fn of(name: &str, state: &BreakerState) -> Self {
        let (since, successes) = match state.breaker.circuit() {
            CircuitState::Closed { .. } => (None, 0),
            CircuitState::Open { since, .. } => (Some(since), 0),
            CircuitState::HalfOpen { successes, .. } => (None, successes),
        };
        let probe = state
            .probe
            .as_ref()
            .map(|probe| ProbeView { job: probe.job.clone(), since: InstantView(probe.since) });
        Self {
            breaker: name.to_owned(),
            state: state.word(),
            failures: state.failures(),
            successes,
            opened_at: since.map(InstantView),
            until: state.until().map(InstantView),
            probe,
            settings: BreakerSettingsView::of(&state.settings),
        }
    }

    /// Whether starts are held or fail.
    pub fn is_shut(&self) -> bool {
        self.state != "closed"
    }
}

impl BreakerHistoryView {
    pub fn of(name: &str, journal: &BreakerJournal) -> Self {
        let changes = journal.changes.iter();
        Self {
            current: BreakerView::of(name, &journal.state),
            history: changes.map(|(seq, change)| BreakerChangeView::of(*seq, change)).collect(),
        }
    }
}

impl BreakerChangeView {
    fn of(seq: Option<u64>, change: &BreakerChange) -> Self {
        let BreakerView { state, failures, successes, until, settings, .. } =
            BreakerView::of("", &change.state);
        Self {
            seq,
            at: InstantView(change.at),
            change: change.change.word(),
            job: change.job.clone(),
            state,
            failures,
            successes,
            needed: match state {
                "half_open" => settings.half_open_max_calls,
                _ => settings.failure_threshold,
            },
            until,
        }
    }
}

impl BreakerSettingsView {
    pub fn of(settings: &BreakerSettings) -> Self {
        Self {
            failure_threshold: settings.failure_threshold,
            recovery_timeout: format_duration(settings.recovery_timeout),
            half_open_max_calls: settings.half_open_max_calls,
            when_open: match settings.when_open {
                WhenOpen::Hold => "hold",
                WhenOpen::Fail => "fail",
            },
            max_hold: settings.max_hold.map(format_duration),
        }
    }
}

/// Returns `None` for changes other than transitions. They are not part of a job's journal, so `seq` is
/// null.
pub fn breaker_event(breaker: &str, change: &BreakerChange) -> Option<EventView> {
    let word = match change.change {
        BreakerChangeKind::Opened | BreakerChangeKind::Tripped => "breaker_opened",
        BreakerChangeKind::HalfOpened => "breaker_half_opened",
        BreakerChangeKind::Closed | BreakerChangeKind::Reset => "breaker_closed",
        BreakerChangeKind::Configured
        | BreakerChangeKind::Failed
        | BreakerChangeKind::Succeeded
        | BreakerChangeKind::Probed
        | BreakerChangeKind::ProbeSucceeded
        | BreakerChangeKind::ProbeLost => return None,
    };
    let mut fields = vec![
        ("seq", Value::Null),
        ("at", rfc3339(change.at).into()),
        ("type", word.into()),
        ("breaker", breaker.into()),
        ("job", change.job.as_deref().into()),
    ];
    if let Some(until) = change.state.until() {
        let why = match (change.change, &change.job, change.failures) {
            (BreakerChangeKind::Tripped, Some(_), _) => "rule",
            (BreakerChangeKind::Tripped, None, _) => "hand",
            (_, _, 0) => "probe",
            _ => "failures",
        };
        fields.push(("until", rfc3339(until).into()));
        fields.push(("why", why.into()));
        fields.push(("failures", change.failures.into()));
    }
    Some(EventView::of(fields))
}
