//! A checked workflow, which needs no further checks.

mod command;
mod flow;
mod map;
mod retry;
mod step;
mod workflow;

pub use crate::task::action::*;
pub use command::{Capture, CaptureFormat, Command, CommandBreaker, Handler, OnInterrupt};
pub use flow::{Aim, Attribute, Flow, FlowStep, Role, StepKind};
pub use map::{InputSource, Map, MapInput, MaxParallel, OnComplete};
pub use retry::{Origin, Place, Resolved};
pub use step::{OnItemFailure, Step, StepPhase, StepWork};
pub use workflow::{Mode, PoolRequest, Secret, Workflow};
