//! A flow: steps that wait for each other's attributes, planned backwards from the goals.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use undaunted_policy::CompletionRule;

use super::command::CommandBreaker;
use super::map::OnComplete;
use super::retry::Resolved;
use crate::workflow::source::Span;

/// What a flow is to reach, and what it begins with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Aim {
    /// The steps it has to reach.
    pub goals: Vec<String>,
    /// The attributes it begins with.
    pub init: BTreeMap<String, Value>,
}

/// A flow that was planned.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The steps it has to reach.
    pub goals: Vec<String>,
    /// The attributes it begins with, where its text says so.
    pub init: BTreeMap<String, Value>,
    /// The steps that lead to the goals, each behind those it needs. Others are not run.
    pub plan: Vec<usize>,
}

/// The definition of a flow step.
#[derive(Clone, Debug)]
pub struct FlowStep {
    pub name: String,
    /// How it is done.
    pub kind: StepKind,
    /// When it is done at all: a condition in CEL.
    pub predicate: Option<String>,
    /// How its items are retried.
    pub retry: Arc<Resolved>,
    /// How many of its items run at a time.
    pub parallelism: u32,
    /// Names to find it by.
    pub labels: BTreeMap<String, String>,
    /// What it takes and gives.
    pub attributes: BTreeMap<String, Attribute>,
    /// The breaker it asks, if it has one.
    pub breaker: Option<CommandBreaker>,
    /// What it waits for.
    pub completion: CompletionRule,
    /// What becomes of what still runs then.
    pub on_complete: OnComplete,
    /// Where it stands in the file.
    pub span: Span,
}

/// How a flow step is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// By a call that answers with the result, or one that answers later.
    Call {
        /// The address that is called.
        endpoint: String,
        /// The address that tells whether it is up.
        health_check: Option<String>,
        /// How long a call may take.
        timeout: Duration,
        /// Whether the result comes later, by webhook.
        later: bool,
        /// How long that is waited for, if it says.
        patience: Option<Duration>,
    },
    /// By another flow with these goals.
    SubFlow {
        /// The steps it has to reach.
        goals: Vec<String>,
    },
}

/// What a step takes or gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Which way it goes.
    pub role: Role,
    /// What kind of value it is.
    pub kind: String,
    /// The value where there is none.
    pub default: Option<Value>,
    /// Whether every element of it is an item.
    pub for_each: bool,
    /// What it is called on the other side.
    pub mapping: Option<String>,
}

/// Which way an attribute goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// In, and there is no doing without.
    Required,
    /// In, if there is one.
    Optional,
    /// In, always the same.
    Const,
    Output,
}
