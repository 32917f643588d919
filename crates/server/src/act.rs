//! What is done for whoever asks, by those who run flows.
//!
//! The server reads and shows; starting a flow, planning one or judging a definition is the business of
//! the engine, and the other side of this border does it. Everything here may wait, and is never
//! called where others would wait with it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::flow_plan::PlanView;
use crate::webhooks::{Delivered, Delivery};

/// A flow that somebody wants started.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StartFlow {
    /// What it is called.
    pub id: String,
    /// The steps it has to reach.
    pub goals: Vec<String>,
    /// The attributes it begins with.
    pub init: Map<String, Value>,
    /// By what it is found.
    pub labels: BTreeMap<String, String>,
    /// Retries for the whole flow; 0 is the operator's default.
    pub retry_budget: u32,
    /// Retries for any one item; 0 is the operator's default.
    pub retry_budget_per_workflow: u32,
    /// Whether a step may be complete without all its items, if that was said.
    pub best_effort: Option<bool>,
    /// How many of them have to succeed, if that was said.
    pub best_effort_min_dcs: Option<u64>,
    /// How long they are waited for, in seconds, if that was said; 0 is the default.
    pub best_effort_deadline_seconds: Option<f64>,
}

/// What became of a wish to start a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    /// It is on the disk, and begins.
    Begun,
    /// The same flow was started before.
    AlreadyThere,
}

/// Why a flow is not started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is no such step.
    #[error("there is no step `{0}`")]
    UnknownStep(String),
    /// Attributes are required that nobody gives.
    #[error("these are required and not given: {}", .0.join(", "))]
    MissingInputs(Vec<String>),
    /// It makes no sense.
    #[error("{0}")]
    Wrong(String),
    /// There is another flow or job of this name.
    #[error("{0}")]
    Conflict(String),
    /// It cannot be written now.
    #[error("{0}")]
    Store(String),
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// There is no such step.
    #[error("there is no step `{0}`")]
    UnknownStep(String),
    /// Attributes are required that nobody gives.
    #[error("these are required and not given: {}", .0.join(", "))]
    MissingInputs(Vec<String>),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// Definitions of steps as JSON, by their ids.
pub type Definitions = BTreeMap<String, Arc<str>>;

/// Those who run flows.
pub trait Flows: Send + Sync {
    /// Whether this is the definition of a step: its id.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    fn check_step(&self, definition: &Value) -> Result<String, String>;

    /// Which of these steps lead to the goals.
    ///
    /// # Errors
    ///
    /// [`PlanError`]; a preview says what is missing in the plan instead.
    fn plan(
        &self,
        definitions: &Definitions,
        goals: &[String],
        init: &Map<String, Value>,
    ) -> Result<PlanView, PlanError>;

    /// Starts a flow. It is on the disk when this returns.
    ///
    /// # Errors
    ///
    /// [`StartError`]
    fn start(&self, flow: StartFlow) -> Result<Started, StartError>;

    /// Hands a result on.
    fn deliver(&self, delivery: Delivery) -> Delivered;

    /// Asks an address whether a step is there. Redirects are not followed.
    ///
    /// # Errors
    ///
    /// What was wrong.
    fn ask_health(&self, address: &str, patience: Duration) -> Result<(), String>;
}
