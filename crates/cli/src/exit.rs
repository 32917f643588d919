//! Exit codes and error messages.

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use undaunted_engine::view::{ErrorView, JobStatus, is_plain, quoted};
use undaunted_runner::keeper::KeeperError;
use undaunted_runner::with_causes;

use crate::screen::plain_lines;

/// How a command that was carried out ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Exit {
    #[default]
    Done,
    Failed,
    Partial,
    Suspended,
    /// Like `Suspended`, after a second signal.
    Interrupted,
    /// The exit status of the command that was run.
    Status(u8),
}

impl Exit {
    pub(crate) const fn of(status: JobStatus) -> Self {
        match status {
            JobStatus::Completed => Self::Done,
            JobStatus::Partial => Self::Partial,
            JobStatus::Failed | JobStatus::Cancelled => Self::Failed,
            JobStatus::Suspended | JobStatus::Running | JobStatus::Stopping => Self::Suspended,
        }
    }

    const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Partial => 4,
            Self::Suspended => 75,
            Self::Interrupted => 130,
            Self::Status(status) => status,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("{0}")]
    Usage(String),
    /// A settings block, or a file that is not a workflow, is invalid.
    #[error("{0}")]
    Invalid(String),
    /// A workflow is invalid. Its diagnostics were printed, unless errors are printed as JSON.
    #[error("{file} is not valid: {errors}")]
    Diagnosed {
        file: String,
        errors: String,
        /// The first error, with its line.
        first: String,
    },
    #[error("{message}")]
    NotFound { code: &'static str, message: String },
    /// There is no store where a command was to find one.
    #[error("{message}\n  help: {help}")]
    NoStore { message: String, help: String },
    /// Another process owns the job.
    #[error("{message}\n  help: {help}")]
    Owned { message: String, help: String },
    /// The store cannot be used.
    #[error("{message}{}", help.as_ref().map(|help| format!("\n  help: {help}")).unwrap_or_default())]
    Store { message: String, help: Option<String> },
    #[error("{}", with_causes(.0))]
    Io(#[from] io::Error),
    /// Neither the user nor the store is at fault.
    #[error("{0}")]
    System(String),
}

/// What a command returns.
pub(crate) type Result<T, E = CommandError> = std::result::Result<T, E>;

impl From<serde_json::Error> for CommandError {
    fn from(error: serde_json::Error) -> Self {
        Self::Io(error.into())
    }
}

impl From<KeeperError> for CommandError {
    fn from(error: KeeperError) -> Self {
        Self::System(with_causes(&error))
    }
}

impl CommandError {
    pub(crate) fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self::NotFound { code, message }
    }

    const fn code(&self) -> u8 {
        match self {
            Self::Io(_) | Self::System(_) => 1,
            Self::Usage(_) => 2,
            Self::Invalid(_) | Self::Diagnosed { .. } => 3,
            Self::NotFound { .. } | Self::NoStore { .. } => 6,
            Self::Owned { .. } | Self::Store { .. } => 7,
        }
    }

    fn view(&self) -> ErrorView {
        let (code, message, help) = match self {
            Self::Usage(message) => ("usage", message.clone(), None),
            Self::Invalid(message) => ("invalid", message.clone(), None),
            Self::Diagnosed { file, first, .. } => {
                let help = format!("`undaunted check {} --json` lists all problems", quoted(file));
                ("invalid_workflow", format!("{self}; {first}"), Some(help))
            }
            Self::NotFound { code, message } => (*code, message.clone(), None),
            Self::NoStore { message, help } => ("no_store", message.clone(), Some(help.clone())),
            Self::Owned { message, help } => ("job_owned", message.clone(), Some(help.clone())),
            Self::Store { message, help } => ("store", message.clone(), help.clone()),
            Self::Io(_) | Self::System(_) => ("io", self.to_string(), None),
        };
        ErrorView::of(code, message, help)
    }
}

/// Whether `--json` was passed, so that errors are printed as JSON too.
pub(crate) fn wants_json() -> bool {
    let mut typed = std::env::args_os().skip(1);
    typed.by_ref().take_while(|word| word != "--").any(|word| word == "--json")
}

/// Prints an error as text or JSON. Without standard error only the exit code is left.
fn print_error(text: &str, view: &ErrorView) {
    let mut err = io::stderr().lock();
    let _ = if wants_json() {
        crate::screen::json(&mut err, view)
    } else {
        writeln!(err, "error: {}", plain_lines(text))
    };
}

/// The exit code of a command. A broken pipe (`| head`) is a success: the reader has read enough.
pub(crate) fn code(done: Result<Exit>) -> ExitCode {
    match done {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(CommandError::Io(error)) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&error.to_string(), &error.view());
            ExitCode::from(error.code())
        }
    }
}

/// The exit status of `exec` for errors of undaunted itself.
const EXEC_ERROR: u8 = 125;

fn typed_is_plain() -> bool {
    std::env::args_os().all(|word| word.to_string_lossy().chars().all(is_plain))
}

/// Prints an error of clap, or the requested help.
pub(crate) fn of_usage(wrong: &clap::Error) -> ExitCode {
    if wrong.exit_code() != 0 && wants_json() {
        let text = wrong.render().to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        let (message, help) = text.split_once("\n\n").unwrap_or((text, ""));
        let help = Some(help.trim().to_owned()).filter(|help| !help.is_empty());
        print_error("", &ErrorView::of("usage", message.trim().to_owned(), help));
    } else if wrong.exit_code() != 0 && !typed_is_plain() {
        // clap repeats what was typed.
        let _ = writeln!(io::stderr(), "{}", plain_lines(&wrong.render().to_string()));
    } else {
        // Without standard error only the exit code is left.
        let _ = wrong.print();
    }
    let mut typed = std::env::args_os().skip(1).take_while(|word| word != "--");
    let code = match wrong.exit_code() {
        0 => 0,
        _ if typed.any(|word| word == "exec") => EXEC_ERROR,
        code => u8::try_from(code).unwrap_or(EXEC_ERROR),
    };
    ExitCode::from(code)
}

/// Like [`code`], for `exec`, whose own errors must not be mistaken for those of the command.
pub(crate) fn of_exec(done: Result<Exit>) -> ExitCode {
    match done {
        Err(error) => {
            print_error(&error.to_string(), &error.view());
            ExitCode::from(EXEC_ERROR)
        }
        done => code(done),
    }
}
