//! A held item: the breaker, since when, its next probe, and what follows.

use serde::Serialize;

use super::context::ViewContext;
use super::time::InstantView;
use crate::breaker::BreakerState;
use crate::dispatch::prober;
use crate::id::ItemId;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HoldView {
    pub breaker: String,
    /// Null if nothing is known of the breaker.
    pub state: Option<&'static str>,
    pub since: InstantView,
    /// When the breaker may be probed, if it is open.
    pub until: Option<InstantView>,
    /// When the hold fails the item. Later by the time that the job is paused or suspended.
    pub expires_at: Option<InstantView>,
    /// With what reason it then fails.
    pub expires_with: Option<&'static str>,
    /// Null is any number.
    pub attempts_left: Option<u64>,
    pub goes_first: bool,
    /// The item that is probed first, if it is another one.
    pub first: Option<String>,
    /// The job whose probe is under way.
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
                .map(|expires| InstantView(expires.after(context.stood_still(hold.since)))),
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
