//! A whole workflow: its steps, and where the items of a map come from.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use undaunted_policy::{CompletionRule, PoolCeilings, PoolLimits, RetryConfig, Tolerance};

use super::command::Command;
use super::flow::{Flow, FlowStep};
use crate::stored::worded;
use crate::workflow::input::{InputFormat, Selection};
use crate::workflow::source::Span;
use crate::workflow::template::{ShellTemplate, TextTemplate};

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
    /// The `retry_config` of the workflow, as it is written.
    pub retry: Option<RetryConfig>,
}

worded! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum WorkflowMode {
        Sequence = "sequence",
        MapReduce = "mapreduce",
        Flow = "flow",
    }
}

/// 0 requests the operator's default. A number above the operator's limit is not refused, however large.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolRequest {
    pub total: u64,
    pub per_item: u64,
    /// Of the keys `retry_budget` and `retry_budget_per_workflow`.
    pub spans: [Span; 2],
}

impl PoolRequest {
    pub fn limits(&self, ceilings: &PoolCeilings) -> PoolLimits {
        let [total, per_item] =
            [self.total, self.per_item].map(|asked| u32::try_from(asked).unwrap_or(u32::MAX));
        PoolLimits::effective(total, per_item, ceilings)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// An environment variable of the process that runs the job.
    Env(String),
    File(String),
}

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

#[derive(Clone, Debug)]
pub struct Map {
    pub input: MapInput,
    pub selection: Selection,
    pub max_parallel: MaxParallel,
    /// Of one item, delays included.
    pub item_deadline: Option<Duration>,
    pub tolerance: Tolerance,
    pub on_item_failure: OnItemFailure,
    pub completion: CompletionRule,
    pub on_complete: OnComplete,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapInput {
    pub source: InputSource,
    pub format: InputFormat,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputSource {
    File(TextTemplate),
    Shell(ShellTemplate),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MaxParallel {
    Number(u32),
    /// An environment variable, read when the job is submitted.
    Variable(String),
}

impl MaxParallel {
    pub const DEFAULT: Self = Self::Number(10);
}

worded! {
    /// What to do with attempts that still run when a step is complete.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum OnComplete {
        #[default]
        Cancel = "cancel",
        /// They keep running; their results are late.
        Leave = "leave",
    }
}
