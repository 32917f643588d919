//! A checked workflow, which needs no further checks.

mod command;
mod flow;
mod map;
mod retry;
mod step;
mod workflow;

pub use crate::task::action::*;
pub use command::{Capture, CaptureFormat, Command, CommandBreaker, Handler, OnInterrupt};
pub use flow::{Attribute, AttributeRole, Flow, FlowGoals, FlowStep, FlowStepKind};
pub use map::{InputSource, Map, MapInput, MaxParallel, OnComplete};
pub use retry::{ResolvedRetry, SettingOrigin, SettingPlace};
pub use step::{OnItemFailure, Step, StepPhase, StepWork};
pub use workflow::{PoolRequest, SecretSource, Workflow, WorkflowMode};
