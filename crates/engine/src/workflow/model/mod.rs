//! A checked workflow, which needs no further checks.

mod command;
mod flow;
mod retry;
mod workflow;

pub use crate::task::action::*;
pub use command::{Capture, CaptureFormat, Command, CommandBreaker, Handler, OnInterrupt};
pub use flow::{Attribute, AttributeRole, Flow, FlowGoals, FlowStep, FlowStepKind};
pub use retry::{ResolvedRetry, SettingOrigin, SettingPlace};
pub use workflow::{
    InputSource, Map, MapInput, MaxParallel, OnComplete, OnItemFailure, PoolRequest, SecretSource, Step,
    StepPhase, StepWork, Workflow, WorkflowMode,
};
