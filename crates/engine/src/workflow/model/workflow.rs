//! A whole workflow.

use std::collections::BTreeMap;
use std::time::Duration;

use undaunted_policy::Tolerance;

use super::flow::Flow;
use super::step::Step;
use crate::workflow::source::Span;
use crate::workflow::template::TextTemplate;

/// A checked description of a job. It never changes.
#[derive(Clone, Debug)]
pub struct Workflow {
    pub name: Option<String>,
    pub mode: WorkflowMode,
    /// In the order of the file.
    pub steps: Vec<Step>,
    pub flow: Option<Flow>,
    pub shell: String,
    /// Arguments by name; one of them holds `{prompt}`.
    pub agents: BTreeMap<String, Vec<String>>,
    pub env: Vec<(String, TextTemplate)>,
    /// Their values are never recorded.
    pub secrets: Vec<(String, SecretSource)>,
    pub pool: Option<PoolRequest>,
    pub tolerance: Tolerance,
    pub deadline: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkflowMode {
    Sequence,
    MapReduce,
    Flow,
}

/// 0 asks for the operator's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolRequest {
    pub total: u32,
    pub per_item: u32,
    /// Of the keys that ask for the two.
    pub spans: [Span; 2],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// An environment variable of the process that runs the job.
    Env(String),
    File(String),
}
