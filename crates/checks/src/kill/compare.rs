//! What the journal says, held against what really happened.
//!
//! Pure: journal, record and what was done to the processes go in, broken promises come out. So its
//! own tests can show each of them being found.

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

/// By how many microseconds the times of a journal may lag behind ours. They are told in milliseconds,
/// and a process that is held up while it sets its clock is late for the rest of its life.
const SLACK: u64 = 25_000;

/// A request, as the step server saw it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServedCall {
    pub(crate) correlation: String,
    /// The command: the last piece of the path.
    pub(crate) command: String,
    pub(crate) token: String,
    /// When it came, in microseconds.
    pub(crate) begin: u64,
    /// What it was answered with; nothing if whoever asked had gone.
    pub(crate) status: Option<u16>,
    /// Whether another request of the same command was being answered, and somebody waited for that.
    pub(crate) overlaps: bool,
}

/// What was done to the processes: when, in microseconds, and to whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct InjectedKills {
    pub(crate) engines: Vec<u64>,
    pub(crate) keepers: Vec<u64>,
    pub(crate) commands: Vec<i32>,
}

/// One job and its circumstances.
pub(crate) struct KillEvidence<'c> {
    pub(crate) plan: &'c KillPlan,
    pub(crate) events: &'c [JournalEvent],
    pub(crate) runs: &'c [CommandRun],
    pub(crate) calls: &'c [ServedCall],
    pub(crate) posted: &'c [PostedResult],
    pub(crate) kills: &'c InjectedKills,
}

/// Holds everything against everything.
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
