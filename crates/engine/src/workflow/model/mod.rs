//! A checked workflow: what the engine works with, and what no longer needs checking.

mod command;
mod flow;
mod map;
mod retry;
mod step;
mod workflow;

pub use crate::task::Action;
pub use command::{
    Body, Capture, CaptureFormat, Command, CommandBreaker, Function, Handler, Http, OnInterrupt,
    Protocol, StepCall, WriteFile,
};
pub use flow::{Aim, Attribute, Flow, FlowStep, Role, StepKind};
pub use map::{InputSource, Map, MapInput, MaxParallel, OnComplete};
pub use retry::{Origin, Place, Resolved};
pub use step::{OnItemFailure, Step, StepPhase, StepWork};
pub use workflow::{Mode, PoolRequest, Secret, Workflow};
