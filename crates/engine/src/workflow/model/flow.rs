//! A flow: steps that wait for each other's attributes, planned backwards from the goals.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use undaunted_policy::CompletionRule;

use super::command::CommandBreaker;
use super::retry::ResolvedRetry;
use super::workflow::OnComplete;
use crate::flow::Predicate;
use crate::stored::worded;
use crate::workflow::source::Span;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowGoals {
    pub goals: Vec<String>,
    pub init: BTreeMap<String, Value>,
}

#[derive(Clone, Debug)]
pub struct Flow {
    pub goals: Vec<String>,
    /// Initial attributes that the text gives.
    pub init: BTreeMap<String, Value>,
    /// Steps that lead to the goals, each after those it needs. Others are not run.
    pub plan: Vec<usize>,
    /// Steps that would set an input of a planned step and that the plan leaves out, with the attributes that
    /// they require and that cannot appear.
    pub excluded: BTreeMap<usize, Vec<String>>,
}

#[derive(Clone, Debug)]
pub struct FlowStep {
    pub name: String,
    pub kind: FlowStepKind,
    /// A condition in CEL for running the step at all.
    pub predicate: Option<Predicate>,
    pub retry: Arc<ResolvedRetry>,
    pub parallelism: u32,
    pub labels: BTreeMap<String, String>,
    pub attributes: BTreeMap<String, Attribute>,
    pub breaker: Option<CommandBreaker>,
    pub completion: CompletionRule,
    pub on_complete: OnComplete,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowStepKind {
    Call {
        method: String,
        /// `{name}` stands for an input.
        endpoint: String,
        health_check: Option<String>,
        /// The limit for one call.
        timeout: Duration,
        /// Whether the result comes later, by webhook.
        later: bool,
        /// How long to wait for that result.
        patience: Option<Duration>,
    },
    SubFlow {
        goals: Vec<String>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    pub role: AttributeRole,
    /// The type of its value in the file's words, or `any`.
    pub kind: String,
    pub default: Option<Value>,
    /// Whether every element makes an item.
    pub for_each: bool,
    /// The name that calls of the step use for it.
    pub mapping: Option<String>,
}

worded! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum AttributeRole {
        Required = "required",
        Optional = "optional",
        Const = "const",
        Output = "output",
    }
}
