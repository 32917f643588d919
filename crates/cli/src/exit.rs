//! Exit codes, and the last words before one.

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

/// Why a command ended without doing what it was asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    /// What was typed cannot be meant.
    #[error("{0}")]
    Usage(String),
    /// A workflow or a block of settings is not valid. What is wrong was shown already.
    #[error("{0}")]
    Invalid(String),
    /// What was named does not exist.
    #[error("{0}")]
    NotFound(String),
}

impl Refused {
    const fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Invalid(_) => 3,
            Self::NotFound(_) => 6,
        }
    }
}

/// What a command's end means for whoever called us. A reader that went away (`| head`) has seen
/// what it wanted.
pub(crate) fn code(done: anyhow::Result<()>) -> ExitCode {
    let Err(error) = done else {
        return ExitCode::SUCCESS;
    };
    let io = error.downcast_ref::<io::Error>();
    if io.is_some_and(|io| io.kind() == ErrorKind::BrokenPipe) {
        return ExitCode::SUCCESS;
    }
    // If even standard error is gone there is nobody left to tell.
    let _ = writeln!(io::stderr(), "error: {error:#}");
    let refused = error.downcast_ref::<Refused>();
    ExitCode::from(refused.map_or(1, Refused::code))
}
