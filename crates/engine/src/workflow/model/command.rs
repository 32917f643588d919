//! A command: one thing to do, and everything about how it is done.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use undaunted_policy::BreakerSettings;

use super::retry::Resolved;
use crate::task::Action;
use crate::workflow::source::Span;
use crate::workflow::template::{JsonTemplate, TextTemplate};

/// One command of an item.
#[derive(Clone, Debug)]
pub struct Command {
    /// What it is called: its `id`, or its kind and place.
    pub id: String,
    /// Its place among all commands of the workflow, from 0: where its jitter is drawn from.
    pub index: u64,
    pub action: Action,
    /// How long one attempt may take.
    pub timeout: Option<Duration>,
    /// Environment variables of its own.
    pub env: Vec<(String, TextTemplate)>,
    /// The directory it runs in.
    pub working_dir: Option<TextTemplate>,
    /// Where its output goes.
    pub capture: Option<Capture>,
    /// Bytes of output after which an attempt is ended.
    pub output_limit: Option<u64>,
    /// How it is retried, and who said so.
    pub retry: Arc<Resolved>,
    /// What runs when it has stopped being retried.
    pub on_failure: Option<Box<Handler>>,
    /// What runs after it has succeeded.
    pub on_success: Vec<Command>,
    /// The breaker it asks before every attempt, if it has one.
    pub breaker: Option<Box<CommandBreaker>>,
    /// Whether it says that it wants none, so that nobody recommends one.
    pub declines_breaker: bool,
    /// What becomes of an attempt that vanished with its process.
    pub on_interrupt: OnInterrupt,
    /// Where it stands in the file.
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Http {
    pub method: String,
    pub url: TextTemplate,
    pub headers: Vec<(String, TextTemplate)>,
    pub body: Option<Body>,
    /// Statuses that count as success.
    pub expect: Vec<RangeInclusive<u16>>,
    /// How the answer is read.
    pub protocol: Protocol,
}

/// A call of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// What it is called.
    pub name: String,
    /// What it is given instead of the item.
    pub with: Option<JsonTemplate>,
}

/// A call of a step of a flow. What it is given is the value of the item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepCall {
    pub endpoint: String,
    /// Whether the result comes later, by webhook.
    pub later: bool,
}

/// The body of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    Text(TextTemplate),
    /// Anything else, as JSON.
    Json(JsonTemplate),
}

/// How an answer is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// The status decides, the body is the output.
    #[default]
    Plain,
    /// The body says `success` and has `outputs`.
    Argyll,
}

#[derive(Clone, Debug, PartialEq)]
pub struct WriteFile {
    pub path: TextTemplate,
    pub content: TextTemplate,
    /// Whether missing directories are made.
    pub create_dirs: bool,
    pub mode: Option<u32>,
}

/// Where the output of a command goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The name later commands find it under.
    pub name: String,
    /// How it is read.
    pub format: CaptureFormat,
}

/// How captured output is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaptureFormat {
    #[default]
    String,
    /// As one JSON document.
    Json,
    /// As a list of lines.
    Lines,
    Number,
    /// As `true` or `false`.
    Boolean,
}

/// What runs when a command has stopped being retried.
#[derive(Clone, Debug)]
pub struct Handler {
    /// The commands, in order; the first failure ends them.
    pub commands: Vec<Command>,
    /// Rounds of handler and one more attempt of the command.
    pub max_attempts: u32,
    /// Whether the command counts as failed even if the handler succeeds.
    pub fail_workflow: bool,
}

/// The breaker a command asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandBreaker {
    /// Its name; without one it is that of the origin a request goes to.
    pub name: Option<String>,
    /// When it opens, and for how long.
    pub settings: BreakerSettings,
}

/// What becomes of an attempt that vanished with its process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnInterrupt {
    /// It is a failure like any other.
    #[default]
    Retry,
    /// The command must not run again unasked.
    Stop,
}
