//! A command: one thing to do, and everything about how it is done.

use std::sync::Arc;
use std::time::Duration;

use undaunted_policy::BreakerSettings;

use super::retry::ResolvedRetry;
use crate::stored::worded;
use crate::task::action::Action;
use crate::workflow::source::Span;
use crate::workflow::template::TextTemplate;

#[derive(Clone, Debug)]
pub struct Command {
    /// The `id` in the file, or the kind and number.
    pub id: String,
    /// The number among all commands of the workflow, from 0; jitter is drawn from it.
    pub index: u64,
    pub action: Action,
    /// The limit for one attempt.
    pub timeout: Option<Duration>,
    pub env: Vec<(String, TextTemplate)>,
    pub working_dir: Option<TextTemplate>,
    pub capture: Option<Capture>,
    /// In bytes; an attempt that writes more is ended.
    pub output_limit: Option<u64>,
    pub retry: Arc<ResolvedRetry>,
    /// Runs when the command is no longer retried.
    pub on_failure: Option<Box<Handler>>,
    pub on_success: Vec<Command>,
    pub breaker: Option<Box<CommandBreaker>>,
    /// `breaker: false`: no warning recommends one.
    pub declines_breaker: bool,
    pub on_interrupt: OnInterrupt,
    pub span: Span,
}

impl Command {
    /// Every other setting has its default.
    pub(in crate::workflow) fn new(
        id: String,
        index: u64,
        action: Action,
        retry: Arc<ResolvedRetry>,
        span: Span,
    ) -> Self {
        Self {
            id,
            index,
            action,
            timeout: None,
            env: Vec::new(),
            working_dir: None,
            capture: None,
            output_limit: None,
            retry,
            on_failure: None,
            on_success: Vec::new(),
            breaker: None,
            declines_breaker: false,
            on_interrupt: OnInterrupt::default(),
            span,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    pub name: String,
    pub format: CaptureFormat,
}

worded! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum CaptureFormat {
        #[default]
        String = "string",
        Json = "json",
        Lines = "lines",
        Number = "number",
        Boolean = "boolean",
    }
}

#[derive(Clone, Debug)]
pub struct Handler {
    /// In order; the first failure ends them.
    pub commands: Vec<Command>,
    /// Rounds of handler and one more attempt of the command.
    pub max_attempts: u32,
    pub fail_workflow: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandBreaker {
    /// Without one, the breaker of the origin that a request goes to.
    pub name: Option<String>,
    pub settings: BreakerSettings,
}

worded! {
    /// What to do about an attempt whose process was lost.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum OnInterrupt {
        /// It is a failure like any other.
        #[default]
        Retry = "retry",
        /// The command runs again only when a user redrives it.
        Stop = "stop",
    }
}
