//! Exit codes, and the last message before one.

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use undaunted_engine::view::Status;

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
    pub(crate) const fn of(status: Status) -> Self {
        match status {
            Status::Completed => Self::Done,
            Status::Partial => Self::Partial,
            Status::Failed | Status::Cancelled => Self::Failed,
            Status::Suspended | Status::Running | Status::Stopping => Self::Suspended,
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
pub(crate) enum Refused {
    #[error("{0}")]
    Usage(String),
    /// A workflow or a block of settings is not valid. The diagnostics were shown already.
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    NotFound(String),
    /// The store cannot be used, or another process owns the job.
    #[error("{message}{}", help.as_ref().map(|help| format!("\n  help: {help}")).unwrap_or_default())]
    Store {
        message: String,
        help: Option<String>,
    },
}

impl Refused {
    const fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Invalid(_) => 3,
            Self::NotFound(_) => 6,
            Self::Store { .. } => 7,
        }
    }
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
    // If even standard error is gone, only the code is left.
    let _ = writeln!(io::stderr(), "error: {error:#}");
    let refused = error.downcast_ref::<Refused>();
    ExitCode::from(refused.map_or(1, Refused::code))
}

/// The status of `exec` for its own errors.
const OWN: u8 = 125;

/// Prints clap's error, or the help that was asked for.
pub(crate) fn of_usage(wrong: &clap::Error) -> ExitCode {
    // If standard error is gone, only the code is left.
    let _ = wrong.print();
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
            let _ = writeln!(io::stderr(), "error: {error:#}");
            ExitCode::from(OWN)
        }
        done => code(done),
    }
}
