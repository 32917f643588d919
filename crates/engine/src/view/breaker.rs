//! Openings and closings of breakers, shown among the events of a job that uses them.

use serde_json::Value;

use super::event::{EventView, rfc3339};
use crate::breaker::{BreakerChange, Change};

/// Returns `None` for changes other than transitions. They are not part of a job's journal, so `seq` is
/// null.
pub fn breaker_event(breaker: &str, change: &BreakerChange) -> Option<EventView> {
    let word = match change.change {
        Change::Opened | Change::Tripped => "breaker_opened",
        Change::HalfOpened => "breaker_half_opened",
        Change::Closed | Change::Reset => "breaker_closed",
        Change::Configured
        | Change::Failed
        | Change::Succeeded
        | Change::Probed
        | Change::ProbeSucceeded
        | Change::ProbeLost => return None,
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
            (Change::Tripped, Some(_), _) => "rule",
            (Change::Tripped, None, _) => "hand",
            (_, _, 0) => "probe",
            _ => "failures",
        };
        fields.push(("until", rfc3339(until).into()));
        fields.push(("why", why.into()));
        fields.push(("failures", change.failures.into()));
    }
    Some(EventView::of(fields))
}
