//! Everything that is known of one job.

use super::attempts::attempts;
use super::{calls, history, lateness, limits, results, runs};
use crate::kill::found::Found;
use crate::kill::journal::Event;
use crate::kill::outside::Run;
use crate::kill::plan::Plan;
use crate::kill::step_server::Posted;

/// By how many microseconds the times of a journal may lag behind ours. They are told in milliseconds,
/// and a process that is held up while it sets its clock is late for the rest of its life.
pub(super) const SLACK: u64 = 25_000;

/// A request, as the step server saw it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) correlation: String,
    /// The command: the last piece of the path.
    pub(crate) command: String,
    pub(crate) token: String,
    /// When it came, in microseconds.
    pub(crate) begin: u64,
    /// What it was answered with; nothing if whoever asked had gone.
    pub(crate) status: Option<u16>,
    /// Whether another request of the same command was being answered, and somebody waited for that.
    pub(crate) beside: bool,
}

/// What was done to the processes: when, in microseconds, and to whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deeds {
    pub(crate) engines: Vec<u64>,
    pub(crate) keepers: Vec<u64>,
    pub(crate) commands: Vec<i32>,
}

/// One job and its circumstances.
pub(crate) struct Case<'c> {
    pub(crate) plan: &'c Plan,
    pub(crate) events: &'c [Event],
    pub(crate) runs: &'c [Run],
    pub(crate) calls: &'c [Call],
    pub(crate) posted: &'c [Posted],
    pub(crate) deeds: &'c Deeds,
}

/// Holds everything against everything.
pub(crate) fn compare(case: &Case<'_>) -> Found {
    let mut found = Found::default();
    history::check(case, &mut found);
    limits::check(case, &mut found);
    let attempts = attempts(case.events);
    runs::check(case, &attempts, &mut found);
    calls::check(case, &attempts, &mut found);
    results::check(case, &mut found);
    lateness::measure(case, &attempts, &mut found);
    found
}
