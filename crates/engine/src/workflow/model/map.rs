//! A map: where items come from, how many may fail, and which are waited for.

use std::time::Duration;

use undaunted_policy::{CompletionRule, Tolerance};

use super::step::OnItemFailure;
use crate::workflow::input::{InputFormat, Selection};
use crate::workflow::template::{ShellTemplate, TextTemplate};

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

/// What becomes of attempts that still run when a step is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnComplete {
    #[default]
    Cancel,
    /// They keep running, and their results are late.
    Leave,
}
