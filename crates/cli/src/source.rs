//! Reading workflow files.

use std::fs::File;
use std::io::{self, ErrorKind, Read};

use undaunted_engine::workflow::{CheckedWorkflow, Source, check, check_bytes_by};

use crate::environment;
use crate::exit::CommandError;

/// Reads and checks one file; `-` is standard input.
pub(crate) fn check_file(path: &str) -> Result<(Source, CheckedWorkflow), CommandError> {
    let operator = environment::operator()?;
    check_file_by(path, |source| check(source, &operator))
}

pub(crate) fn check_file_by(
    path: &str,
    check: impl FnOnce(&Source) -> CheckedWorkflow,
) -> Result<(Source, CheckedWorkflow), CommandError> {
    let bytes = read(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => CommandError::not_found("no_file", format!("there is no file `{path}`")),
        _ => CommandError::Invalid(format!("`{path}` cannot be read: {error}")),
    })?;
    let name = if path == "-" { "standard input" } else { path };
    Ok(check_bytes_by(name, bytes, check))
}

fn read(path: &str) -> io::Result<Vec<u8>> {
    // One byte more than is accepted shows that a file is too large, without reading the rest.
    let most = u64::try_from(Source::MOST_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    if path == "-" {
        io::stdin().lock().take(most).read_to_end(&mut bytes)?;
    } else {
        File::open(path)?.take(most).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}
