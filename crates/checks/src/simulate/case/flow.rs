//! Flows of a case: steps that take and give attributes.

use std::time::Duration;

/// A flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseFlow {
    /// The labels of the steps it is for; never empty.
    pub goals: Vec<u32>,
    /// What there is from the beginning: a name, and the elements of an array.
    pub init: Vec<(String, Vec<u32>)>,
    /// Its steps. What one takes, an earlier one gives, or it is there from the beginning.
    pub steps: Vec<CaseFlowStep>,
}

impl CaseFlow {
    /// Whether its goals are there, and whatever a step takes is given.
    #[must_use]
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

/// A step of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseFlowStep {
    /// Its number; it is called `w` and that.
    pub label: u32,
    /// Where it is: `http://place-K.test`.
    pub place: usize,
    /// How its result comes.
    pub kind: CaseStepKind,
    /// How long a call may take.
    pub timeout: Option<Duration>,
    /// Its `work_config`.
    pub work: Option<CaseWorkConfig>,
    /// The attributes it takes.
    pub takes: Vec<CaseInput>,
    /// The attributes it gives.
    pub gives: Vec<String>,
}

impl CaseFlowStep {
    /// What it is called.
    #[must_use]
    pub fn name(&self) -> String {
        format!("w{}", self.label)
    }
}

/// How the result of a step comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseStepKind {
    /// With the answer.
    Sync,
    /// Later, within this time.
    Async(Duration),
}

/// An attribute that a step takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseInput {
    /// Its name.
    pub name: String,
    /// Whether the step can go without.
    pub role: CaseInputRole,
    /// Whether each element of it is an item.
    pub each: bool,
}

/// Whether a step can go without an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseInputRole {
    /// It cannot.
    Required,
    /// It can, and then takes `[1]`.
    Optional,
}

/// How the items of a step are retried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaseWorkConfig {
    /// How many retries.
    pub max_retries: Option<u32>,
    /// The first delay.
    pub backoff: Option<Duration>,
    /// The longest delay.
    pub max_backoff: Option<Duration>,
    /// How delays grow.
    pub growth: Option<CaseWorkBackoff>,
    /// How many items run at a time.
    pub parallelism: Option<u32>,
}

/// How delays of a step grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseWorkBackoff {
    /// Not at all.
    Fixed,
    /// By the first delay each time.
    Linear,
    /// By a factor of two each time.
    Exponential,
}
