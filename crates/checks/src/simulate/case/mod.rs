//! Generated jobs and the behaviour of their commands.
//!
//! A case is plain values, from which the text of a workflow is written (`text`) and which the model reads
//! instead of that text, so that the model does not share the engine's parser. A script says how each attempt
//! ends. Cases are generated from a seed (`generate`) and shrunk one thing at a time (`smaller`).

mod command;
mod flow;
mod generate;
mod job_case;
mod retry;
mod smaller;
#[cfg(test)]
mod tests;
mod text;

pub use command::{CaseBreaker, CaseCall, CaseCommand, CaseFormat, CaseHandler};
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
