//! Compares the journal with what really happened.
//!
//! Pure: the journal, the record and the injected kills go in, violations come out, so that `tests` can show
//! each violation being found.

use attempts::attempts;

use super::findings::KillFindings;
use super::journal::JournalEvent;
use super::plan::KillPlan;
use super::record::CommandRun;
use super::step_server::PostedResult;

mod attempts;
mod calls;
mod history;
mod lateness;
mod limits;
mod runs;
#[cfg(test)]
mod tests;

/// By how many microseconds the journal's times may lag behind ours. They are in milliseconds, and a process
/// that is delayed while it sets its clock stays late.
const SLACK: u64 = 25_000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServedCall {
    pub(crate) correlation: String,
    /// The last segment of the path.
    pub(crate) command: String,
    pub(crate) token: String,
    /// In microseconds.
    pub(crate) begin: u64,
    /// The status of the response; `None` if the client had closed the connection.
    pub(crate) status: Option<u16>,
    /// Whether another request of the same command was still being answered to a connected client.
    pub(crate) overlaps: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct InjectedKills {
    pub(crate) engines: Vec<u64>,
    pub(crate) keepers: Vec<u64>,
    pub(crate) commands: Vec<i32>,
}

/// One job, with everything observed from outside.
pub(crate) struct KillEvidence<'c> {
    pub(crate) plan: &'c KillPlan,
    pub(crate) events: &'c [JournalEvent],
    pub(crate) runs: &'c [CommandRun],
    pub(crate) calls: &'c [ServedCall],
    pub(crate) posted: &'c [PostedResult],
    pub(crate) kills: &'c InjectedKills,
}

/// Checks the evidence and returns the violations.
pub(crate) fn compare(case: &KillEvidence<'_>) -> KillFindings {
    let mut findings = KillFindings::default();
    history::check(case, &mut findings);
    limits::check(case, &mut findings);
    let attempts = attempts(case.events);
    runs::check(case, &attempts, &mut findings);
    calls::check(case, &attempts, &mut findings);
    lateness::measure(case, &attempts, &mut findings);
    findings
}
