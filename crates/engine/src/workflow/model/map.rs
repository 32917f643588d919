//! A map: where items come from, and how many fail or are waited for.

use std::time::Duration;

use undaunted_policy::{CompletionRule, Tolerance};

use super::step::OnItemFailure;
use crate::workflow::input::{Format, Selection};
use crate::workflow::template::{ShellTemplate, TextTemplate};

/// What a map does with which items.
#[derive(Clone, Debug)]
pub struct Map {
    /// Where the items come from.
    pub input: MapInput,
    /// Which of them are taken, and in which order.
    pub selection: Selection,
    /// How many run at a time.
    pub max_parallel: MaxParallel,
    /// How long one item may take, delays included.
    pub item_deadline: Option<Duration>,
    /// How many items may fail.
    pub tolerance: Tolerance,
    /// What becomes of one that has failed.
    pub on_item_failure: OnItemFailure,
    /// What the step waits for.
    pub completion: CompletionRule,
    /// What becomes of what still runs when the step is complete.
    pub on_complete: OnComplete,
}

/// Where items come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapInput {
    pub source: InputSource,
    /// How it is read.
    pub format: Format,
}

/// What items are read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputSource {
    File(TextTemplate),
    /// The output of a command.
    Shell(ShellTemplate),
}

/// How many items run at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MaxParallel {
    Number(u32),
    /// As many as this environment variable says when the job is submitted.
    Variable(String),
}

impl MaxParallel {
    /// What is used when nothing is said.
    pub const DEFAULT: Self = Self::Number(10);
}

/// What becomes of what still runs when a step is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnComplete {
    #[default]
    Cancel,
    /// It goes on, and its results are late.
    Leave,
}
