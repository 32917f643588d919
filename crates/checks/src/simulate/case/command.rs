//! Commands of a case, with their handlers and breakers.

use std::time::Duration;

use super::retry::CaseRetry;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseCommand {
    /// It is called `w` and this number, in the text and as its id.
    pub label: u32,
    /// The request it sends; a shell command has none.
    pub call: Option<CaseCall>,
    pub retry: Option<CaseRetry>,
    pub timeout: Option<Duration>,
    /// The format that its captured output must have.
    pub capture: Option<CaseFormat>,
    /// The index of its breaker. A request has none of its own: it asks the breaker of its origin.
    pub breaker: Option<usize>,
    pub stays_interrupted: bool,
    pub on_failure: Option<CaseHandler>,
    pub on_success: Vec<CaseCommand>,
}

impl CaseCommand {
    pub fn name(&self) -> String {
        format!("w{}", self.label)
    }

    /// It and all commands that run because of it.
    pub fn with_all_below(&self) -> Vec<&Self> {
        let handler = self.on_failure.iter().flat_map(|it| &it.commands);
        let below = handler.chain(&self.on_success);
        let mut all = vec![self];
        all.extend(below.flat_map(Self::with_all_below));
        all
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseCall {
    /// It goes to `http://place-K.test`.
    pub place: usize,
    /// `POST`, not `GET`.
    pub posts: bool,
}

/// The format of captured output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseFormat {
    Text,
    Number,
    Json,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseHandler {
    /// Never empty.
    pub commands: Vec<CaseCommand>,
    /// Rounds of the handler and one more attempt (`max_attempts`).
    pub rounds: u32,
    pub fails: bool,
}

/// A breaker with its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseBreaker {
    /// The origin it stands for; a breaker without one has a name.
    pub place: Option<usize>,
    pub threshold: u32,
    pub recovery: Duration,
    pub half_open_calls: u32,
    pub fails: bool,
    pub max_hold: Option<Duration>,
}
