//! A checked workflow: what the engine works with, and what no longer needs checking.

mod command;
mod flow;
mod map;
mod retry;
mod step;
mod workflow;

pub use command::{
    Action, Body, Breaker, Capture, CaptureFormat, Command, Function, Handler, Http, OnInterrupt,
    Protocol, StepCall, WriteFile,
};
pub use flow::{Aim, Attribute, Flow, FlowStep, Role, StepKind};
pub use map::{Input, InputSource, Map, MaxParallel, OnComplete};
pub use retry::{Origin, Place, Resolved};
pub use step::{OnItemFailure, Phase, Step, Work};
pub use workflow::{Mode, PoolRequest, Secret, Workflow};
