//! An item on hold: its breaker, the next probe, and when the hold expires.

use serde::Serialize;

use super::context::ViewContext;
use super::time::InstantView;
use crate::breaker::BreakerState;
use crate::dispatch::prober;
use crate::id::ItemId;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HoldView {
    pub breaker: String,
    /// Null if the breaker is unknown.
    pub state: Option<&'static str>,
    pub since: InstantView,
    /// The earliest instant of the next probe, if the breaker is open.
    pub until: Option<InstantView>,
    /// When the hold fails the item. Time in which the job is paused or suspended does not count.
    pub expires_at: Option<InstantView>,
    /// The reason of that failure.
    pub expires_with: Option<&'static str>,
    /// Null without a limit.
    pub attempts_left: Option<u64>,
    pub goes_first: bool,
    /// The item that probes first, if it is another one.
    pub first: Option<String>,
    /// The job whose probe runs.
    pub probing: Option<String>,
}

impl HoldView {
    pub fn of(context: &ViewContext<'_>, item: ItemId) -> Option<Self> {
        let job = context.job;
        let hold = job.step(item.step)?.held.get(item.index)?;
        let state = context.breakers.get(&hold.breaker);
        let shut = state.is_some_and(BreakerState::is_open_or_half_open);
        let first = prober(job, &hold.breaker).filter(|_| shut);
        let active = job.active(item);
        let deadline = active.and_then(|active| job.deadline_of(item.step, active));
        let probe = state.and_then(|state| state.probe.as_ref());
        Some(Self {
            breaker: hold.breaker.to_string(),
            state: state.map(BreakerState::word),
            since: InstantView(hold.since),
            until: state.and_then(BreakerState::until).map(InstantView),
            expires_at: hold
                .expires
                .map(|expires| InstantView(expires.after(context.standstill(hold.since)))),
            expires_with: hold.expires.map(|expires| match deadline {
                Some(deadline) if deadline == expires => "deadline",
                Some(_) | None => "circuit_open",
            }),
            attempts_left: Some(hold.left).filter(|left| *left < u64::MAX),
            goes_first: first == Some(item),
            first: first.filter(|first| *first != item).map(|first| job.identity(first).to_owned()),
            probing: probe.map(|probe| probe.job.clone()),
        })
    }
}
