//! A step: a set of items, and the commands each of them goes through.

use std::sync::Arc;

use super::command::Command;
use super::flow::FlowStep;
use super::map::Map;

#[derive(Clone, Debug)]
pub struct Step {
    pub name: String,
    pub phase: StepPhase,
    /// Indices of the steps that have to be complete first.
    pub needs: Vec<usize>,
    pub work: StepWork,
    /// Of one item, in order.
    pub commands: Vec<Command>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepPhase {
    Sequence,
    Setup,
    Map,
    Reduce,
    Flow,
}

#[derive(Clone, Debug)]
pub enum StepWork {
    One,
    Map(Box<Map>),
    Call(Arc<FlowStep>),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnItemFailure {
    #[default]
    DeadLetter,
    Skip,
    Stop,
}
