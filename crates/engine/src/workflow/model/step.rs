//! A step: a set of items, and the commands each of them goes through.

use std::sync::Arc;

use super::command::Command;
use super::flow::FlowStep;
use super::map::Map;

/// A node of the workflow's graph.
#[derive(Clone, Debug)]
pub struct Step {
    /// What it is called.
    pub name: String,
    /// Which part of the workflow it belongs to.
    pub phase: StepPhase,
    /// The steps that have to be complete first, by their place in the workflow.
    pub needs: Vec<usize>,
    /// What its items are.
    pub work: StepWork,
    /// The commands of one item, in order.
    pub commands: Vec<Command>,
}

/// Which part of the workflow a step belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepPhase {
    /// A command of a list.
    Sequence,
    Setup,
    Map,
    Reduce,
    Flow,
}

/// What the items of a step are.
#[derive(Clone, Debug)]
pub enum StepWork {
    One,
    /// One item for each element of an input.
    Map(Box<Map>),
    Call(Arc<FlowStep>),
}

/// What becomes of an item that has failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnItemFailure {
    /// It becomes a dead letter.
    #[default]
    DeadLetter,
    Skip,
    /// It stops the step.
    Stop,
}
