//! Flows of a case: steps with inputs and outputs.

use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseFlow {
    /// Labels of steps; never empty.
    pub goals: Vec<u32>,
    /// Names of attributes, each with the elements of an array.
    pub init: Vec<(String, Vec<u32>)>,
    /// Inputs are outputs of earlier steps, or in `init`.
    pub steps: Vec<CaseFlowStep>,
}

impl CaseFlow {
    /// Whether all goals exist and every input is produced before.
    pub fn is_whole(&self) -> bool {
        let mut known: Vec<&String> = self.init.iter().map(|(name, _)| name).collect();
        for step in &self.steps {
            if step.takes.iter().any(|taken| !known.contains(&&taken.name)) {
                return false;
            }
            known.extend(&step.gives);
        }
        let is_there = |goal: &u32| self.steps.iter().any(|it| it.label == *goal);
        self.goals.iter().all(is_there)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseFlowStep {
    pub label: u32,
    /// It calls `http://place-K.test`.
    pub place: usize,
    pub kind: CaseStepKind,
    pub timeout: Option<Duration>,
    pub work: Option<CaseWorkConfig>,
    pub takes: Vec<CaseInput>,
    pub gives: Vec<String>,
}

impl CaseFlowStep {
    pub fn name(&self) -> String {
        format!("w{}", self.label)
    }
}

/// How the result of a step arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseStepKind {
    Sync,
    /// Later, within this time.
    Async(Duration),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseInput {
    pub name: String,
    pub role: CaseInputRole,
    /// Whether each element is an item.
    pub each: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseInputRole {
    Required,
    /// It defaults to `[1]`.
    Optional,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaseWorkConfig {
    pub max_retries: Option<u32>,
    pub backoff: Option<Duration>,
    pub max_backoff: Option<Duration>,
    pub growth: Option<CaseWorkBackoff>,
    pub parallelism: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseWorkBackoff {
    Fixed,
    /// A multiple of the first delay.
    Linear,
    Exponential,
}
