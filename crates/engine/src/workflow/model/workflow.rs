//! The whole.

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
    /// What it is called, if it says so.
    pub name: Option<String>,
    /// How its parts hang together.
    pub mode: Mode,
    /// Its steps, in the order of the file; each knows which others it needs.
    pub steps: Vec<Step>,
    /// The plan of a flow.
    pub flow: Option<Flow>,
    /// The shell that runs `shell:` texts.
    pub shell: String,
    /// Programs that take a prompt: their arguments, one of which holds `{prompt}`.
    pub agents: BTreeMap<String, Vec<String>>,
    /// Environment variables of every command.
    pub env: Vec<(String, TextTemplate)>,
    /// Environment variables whose values are never recorded.
    pub secrets: Vec<(String, Secret)>,
    /// The retries all items share.
    pub pool: Option<PoolRequest>,
    /// How many items may fail.
    pub tolerance: Tolerance,
    /// How long the job may take.
    pub deadline: Option<Duration>,
}

/// How the parts of a workflow hang together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One command after the other.
    Sequence,
    /// Setup, every item, reduce.
    MapReduce,
    /// Steps that wait for each other's attributes.
    Flow,
}

/// The pool a workflow asks for; 0 is the operator's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolRequest {
    /// Retries for the whole job.
    pub total: u32,
    /// Retries for any one item.
    pub per_item: u32,
    /// Where the two were asked for.
    pub spans: [Span; 2],
}

/// Where a secret is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Secret {
    /// An environment variable of whoever runs the job.
    Env(String),
    File(String),
}
