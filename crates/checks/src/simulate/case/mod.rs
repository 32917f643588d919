//! Random jobs, and what their commands do.
//!
//! A case is a description of our own: plain values, from which the text of a workflow is written
//! (`text`) and which the model reads instead of that text, so that nobody shares the engine's
//! reading of it. The script (`act`) says how each attempt goes. Everything comes from a die
//! (`draw`), so a seed repeats it, and a case can be made smaller (`smaller`) one thing at a time.

mod command;
mod flow;
mod generate;
mod job_case;
mod retry;
mod smaller;
#[cfg(test)]
mod tests;
mod text;

pub use command::{CaptureFormat, CaseBreaker, CaseCall, CaseCommand, CaseHandler};
pub use flow::{
    CaseFlow, CaseFlowStep, CaseInput, CaseInputRole, CaseStepKind, CaseWorkBackoff, CaseWorkConfig,
};
pub use job_case::{
    AttemptScript, CaseCompletion, CaseMap, CaseShape, CaseTolerance, JobCase, ScriptedAttempt, ScriptedEnd,
};
pub use retry::{
    CaseAction, CaseAttempts, CaseBackoff, CaseCondition, CaseFailureKind, CaseJitter, CaseRetry, CaseRule,
};
pub use text::is_gated;
