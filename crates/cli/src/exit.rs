//! Exit codes, and the last message before one.

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use undaunted_engine::view::{ErrorView, JobStatus, quoted};

/// How a command ended that was carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Exit {
    #[default]
    Done,
    Failed,
    Partial,
    Suspended,
    /// As `Suspended`, after a second signal.
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
    /// A block of settings or a file of another kind is not valid.
    #[error("{0}")]
    Invalid(String),
    /// A workflow is not valid. Its diagnostics were shown, unless errors are printed as JSON.
    #[error("{file} is not valid: {errors}")]
    Diagnosed {
        file: String,
        errors: String,
        /// The first error, with its place.
        first: String,
    },
    #[error("{message}")]
    NotFound { code: &'static str, message: String },
    /// Another process owns the job.
    #[error("{message}\n  help: {help}")]
    Owned { message: String, help: String },
    /// The store cannot be used.
    #[error("{message}{}", help.as_ref().map(|help| format!("\n  help: {help}")).unwrap_or_default())]
    Store { message: String, help: Option<String> },
}

impl CommandError {
    pub(crate) fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self::NotFound { code, message }
    }

    const fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Invalid(_) | Self::Diagnosed { .. } => 3,
            Self::NotFound { .. } => 6,
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
            Self::Owned { message, help } => ("job_owned", message.clone(), Some(help.clone())),
            Self::Store { message, help } => ("store", message.clone(), help.clone()),
        };
        ErrorView::of(code, message, help)
    }
}

/// Whether the user asked for JSON, and so gets errors as JSON too.
pub(crate) fn wants_json() -> bool {
    let mut typed = std::env::args_os().skip(1);
    typed.by_ref().take_while(|word| word != "--").any(|word| word == "--json")
}

/// Prints an error as the user asked for it. If even standard error is gone, only the code is left.
fn complain(text: &str, view: &ErrorView) {
    let mut err = io::stderr().lock();
    let _ = if wants_json() { crate::screen::json(&mut err, view) } else { writeln!(err, "error: {text}") };
}

/// The exit code of a command. A broken pipe (`| head`) is a success: the reader has what it wanted.
pub(crate) fn code(done: anyhow::Result<Exit>) -> ExitCode {
    let error = match done {
        Ok(exit) => return ExitCode::from(exit.code()),
        Err(error) => error,
    };
    let io = error.downcast_ref::<io::Error>().map(io::Error::kind);
    let json = error.downcast_ref::<serde_json::Error>();
    let json = json.and_then(serde_json::Error::io_error_kind);
    if io.or(json) == Some(ErrorKind::BrokenPipe) {
        return ExitCode::SUCCESS;
    }
    complain(&format!("{error:#}"), &view(&error));
    let refused = error.downcast_ref::<CommandError>();
    ExitCode::from(refused.map_or(1, CommandError::code))
}

fn view(error: &anyhow::Error) -> ErrorView {
    match error.downcast_ref::<CommandError>() {
        Some(refused) => refused.view(),
        None => ErrorView::of("io", format!("{error:#}"), None),
    }
}

/// The status of `exec` for its own errors.
const OWN: u8 = 125;

/// Prints clap's error, or the help that was asked for.
pub(crate) fn of_usage(wrong: &clap::Error) -> ExitCode {
    if wrong.exit_code() != 0 && wants_json() {
        let text = wrong.render().to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        let (message, help) = text.split_once("\n\n").unwrap_or((text, ""));
        let help = Some(help.trim().to_owned()).filter(|help| !help.is_empty());
        complain("", &ErrorView::of("usage", message.trim().to_owned(), help));
    } else {
        // If standard error is gone, only the code is left.
        let _ = wrong.print();
    }
    let mut typed = std::env::args_os().skip(1).take_while(|word| word != "--");
    let code = match wrong.exit_code() {
        0 => 0,
        _ if typed.any(|word| word == "exec") => OWN,
        code => u8::try_from(code).unwrap_or(OWN),
    };
    ExitCode::from(code)
}

/// As [`code`], for `exec`, whose own errors must not be taken for those of the command.
pub(crate) fn of_exec(done: anyhow::Result<Exit>) -> ExitCode {
    match done {
        Err(error) => {
            complain(&format!("{error:#}"), &view(&error));
            ExitCode::from(OWN)
        }
        done => code(done),
    }
}
