//! What a command does: as the workflow says it ([`Action`]), and as one attempt does it ([`TaskWork`]).
//!
//! Whatever depends on the kind of a command is here, in exhaustive matches, except reading a command from a
//! file (`workflow`) and executing it (the runner's executors).

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStringExt as _;
use std::time::Duration;

use super::call::{FunctionCall, HttpCall, function_call, http_call, step_call};
use super::sub_flow::{SubFlow, sub_flow};
use super::values::ItemValues;
use crate::job::Job;
use crate::stored::worded;
use crate::workflow::template::{JsonTemplate, Reference, ShellTemplate, TextTemplate, ValueError};

#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Shell(ShellTemplate),
    Agent {
        name: String,
        prompt: TextTemplate,
    },
    Http(Box<HttpAction>),
    WriteFile(Box<WriteFile>),
    /// Calls a function of the program that runs the job.
    Function(Box<FunctionAction>),
    Step(Box<StepCall>),
    /// Starts a flow with these goals; the value of the item holds its initial attributes.
    SubFlow(Vec<String>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct HttpAction {
    pub method: String,
    pub url: TextTemplate,
    pub headers: Vec<(String, TextTemplate)>,
    pub body: Option<HttpBody>,
    /// Statuses that count as success.
    pub expect: Vec<RangeInclusive<u16>>,
    pub protocol: HttpProtocol,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FunctionAction {
    pub name: String,
    /// The input of the function, if it is not the value of the item.
    pub with: Option<JsonTemplate>,
}

/// A call of a step of a flow; its arguments are the value of the item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepCall {
    pub method: String,
    /// `{name}` stands for an input.
    pub endpoint: String,
    /// Whether the result comes by webhook.
    pub later: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum HttpBody {
    Text(TextTemplate),
    Json(JsonTemplate),
}

worded! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum HttpProtocol {
        /// The status decides, the body is the output.
        #[default]
        Plain = "plain",
        /// The body says `success` and has `outputs`.
        Argyll = "argyll",
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct WriteFile {
    pub path: TextTemplate,
    pub content: TextTemplate,
    pub create_dirs: bool,
    pub mode: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskWork {
    Run { argv: Vec<OsString> },
    Call(Box<HttpCall>),
    Function(Box<FunctionCall>),
    Flow(Box<SubFlow>),
    Write { path: String, content: String, create_dirs: bool, mode: Option<u32>, token: String },
}

impl Action {
    /// The key of the command in a workflow file.
    pub fn kind(&self) -> &str {
        match self {
            Self::Shell(_) => "shell",
            Self::Agent { name, .. } => name,
            Self::Http(_) => "http",
            Self::WriteFile(_) => "write_file",
            Self::Function(_) => "function",
            Self::Step(_) => "step",
            Self::SubFlow(_) => "flow",
        }
    }

    /// Whether the command is a process, which has an environment and needs a keeper.
    pub const fn is_program(&self) -> bool {
        match self {
            Self::Shell(_) | Self::Agent { .. } => true,
            Self::Http(_) | Self::WriteFile(_) | Self::Function(_) | Self::Step(_) | Self::SubFlow(_) => {
                false
            }
        }
    }

    /// Keys that have no effect: only programs have an environment, and only programs and files a directory.
    pub(crate) const fn unused_keys(&self) -> &'static [&'static str] {
        match self {
            Self::Shell(_) | Self::Agent { .. } => &[],
            Self::WriteFile(_) => &["env"],
            Self::Http(_) | Self::Step(_) | Self::SubFlow(_) | Self::Function(_) => &["env", "working_dir"],
        }
    }

    /// Whether the output is always stored, because nothing else keeps the result.
    pub(crate) const fn always_keeps_output(&self) -> bool {
        match self {
            Self::Step(_) | Self::SubFlow(_) | Self::Function(_) => true,
            Self::Shell(_) | Self::Agent { .. } | Self::Http(_) | Self::WriteFile(_) => false,
        }
    }

    /// The timeout of a command that sets none: a request must not wait for ever.
    pub(crate) const fn default_timeout(&self) -> Option<Duration> {
        match self {
            Self::Http(_) | Self::Step(_) => Some(Duration::from_secs(30)),
            Self::Shell(_)
            | Self::Agent { .. }
            | Self::WriteFile(_)
            | Self::Function(_)
            | Self::SubFlow(_) => None,
        }
    }

    pub(crate) fn each_reference(&self, take: &mut dyn FnMut(&Reference)) {
        match self {
            Self::Shell(script) => script.references().for_each(&mut *take),
            Self::Agent { prompt, .. } => prompt.references().for_each(&mut *take),
            Self::WriteFile(file) => {
                file.path.references().for_each(&mut *take);
                file.content.references().for_each(&mut *take);
            }
            Self::Function(function) => {
                function.with.iter().flat_map(JsonTemplate::references).for_each(&mut *take);
            }
            // A step's arguments are the value of its item.
            Self::Step(_) | Self::SubFlow(_) => {}
            Self::Http(http) => {
                http.url.references().for_each(&mut *take);
                for (_, value) in &http.headers {
                    value.references().for_each(&mut *take);
                }
                match &http.body {
                    Some(HttpBody::Text(text)) => text.references().for_each(&mut *take),
                    Some(HttpBody::Json(json)) => json.references().for_each(&mut *take),
                    None => {}
                }
            }
        }
    }

    /// Adds the values that a shell reads by name to `env`.
    pub(super) fn work(
        &self,
        values: &ItemValues<'_>,
        env: &mut Vec<(String, String)>,
    ) -> Result<TaskWork, ValueError> {
        Ok(match self {
            Self::Shell(text) => {
                let script = text.render(values)?;
                env.extend(script.env);
                TaskWork::shell(values.job, script.text)
            }
            Self::Agent { name, prompt } => {
                // An item of `map` that is not text is passed as the bytes it was read as.
                let bytes = values.typed_bytes();
                let prompt = bytes.map_or_else(|| Ok(prompt.render(values)?.into_bytes()), Ok)?;
                let argv = values.job.workflow().agents.get(name).into_iter().flatten();
                TaskWork::Run { argv: argv.map(|word| with_prompt(word, &prompt)).collect() }
            }
            Self::WriteFile(file) => TaskWork::Write {
                path: file.path.render(values)?,
                content: file.content.render(values)?,
                create_dirs: file.create_dirs,
                mode: file.mode,
                token: values.receipt_token(),
            },
            Self::Function(function) => TaskWork::Function(Box::new(function_call(values, function)?)),
            Self::Step(step) => TaskWork::Call(Box::new(step_call(values, step)?)),
            Self::SubFlow(goals) => TaskWork::Flow(Box::new(sub_flow(values, goals))),
            Self::Http(http) => {
                let with_secrets = values.with_secrets();
                let call = http_call(&with_secrets, http)?;
                if with_secrets.needs_item_file() {
                    values.require_item_file();
                }
                TaskWork::Call(Box::new(call))
            }
        })
    }
}

/// An argument of an agent with the prompt in place of `{prompt}`.
fn with_prompt(word: &str, prompt: &[u8]) -> OsString {
    let pieces: Vec<&[u8]> = word.split("{prompt}").map(str::as_bytes).collect();
    OsString::from_vec(pieces.join(prompt))
}

impl TaskWork {
    pub(super) fn shell(job: &Job, text: String) -> Self {
        Self::Run { argv: vec![job.workflow().shell.clone().into(), "-c".into(), text.into()] }
    }

    pub fn program(&self) -> Option<&str> {
        match self {
            Self::Run { argv } => argv.first().and_then(|program| program.to_str()),
            Self::Call(_) | Self::Function(_) | Self::Flow(_) | Self::Write { .. } => None,
        }
    }
}
