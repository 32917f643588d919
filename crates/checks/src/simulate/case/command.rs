//! Commands of a case, and what stands around them.

use std::time::Duration;

use super::retry::CaseRetry;

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseCommand {
    /// Its number; it is called `w` and that, in its text and as its id.
    pub label: u32,
    /// The request it sends; without one it is a shell command.
    pub call: Option<CaseCall>,
    /// Its `retry_config`.
    pub retry: Option<CaseRetry>,
    /// How long an attempt may take.
    pub timeout: Option<Duration>,
    /// Keeps its output, which must have this format.
    pub capture: Option<CaptureFormat>,
    /// The place of its breaker among those of the case. A request has none of its own: it asks the
    /// one of where it goes.
    pub breaker: Option<usize>,
    /// `on_interrupt: stop`.
    pub stays_interrupted: bool,
    /// What runs when it has stopped being retried.
    pub on_failure: Option<CaseHandler>,
    /// What runs after it has succeeded.
    pub on_success: Vec<CaseCommand>,
}

impl CaseCommand {
    /// What it is called.
    #[must_use]
    pub fn name(&self) -> String {
        format!("w{}", self.label)
    }

    /// It and everything that runs because of it.
    pub fn with_all_below(&self) -> Vec<&Self> {
        let handler = self.on_failure.iter().flat_map(|it| &it.commands);
        let below = handler.chain(&self.on_success);
        let mut all = vec![self];
        all.extend(below.flat_map(Self::with_all_below));
        all
    }
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseCall {
    /// It goes to `http://place-K.test`.
    pub place: usize,
    /// `POST`, not `GET`.
    pub posts: bool,
}

/// What captured output must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureFormat {
    /// Anything.
    Text,
    /// A number.
    Number,
    /// JSON.
    Json,
}

/// What runs when a command has stopped being retried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseHandler {
    /// In this order; never empty.
    pub commands: Vec<CaseCommand>,
    /// Rounds of handler and one more attempt (`max_attempts`).
    pub rounds: u32,
    /// `fail_workflow: true`.
    pub fails: bool,
}

/// A breaker, with the same settings wherever it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseBreaker {
    /// The place it stands before, if that is where requests go; else it has a name.
    pub place: Option<usize>,
    /// Failures in a row that open it.
    pub threshold: u32,
    /// How long it stays open.
    pub recovery: Duration,
    /// Successes that close it.
    pub half_open_calls: u32,
    /// `when_open: fail`.
    pub fails: bool,
    /// How long it holds an item at most.
    pub max_hold: Option<Duration>,
}
