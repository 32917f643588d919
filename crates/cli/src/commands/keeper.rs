//! `undaunted keeper FOLDER`: the process that starts commands. Not for people.
//!
//! Every job with programs starts one and waits for it, so it does not go the way of what is typed:
//! to know all commands and flags takes longer than to be ready.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::exit::Exit;

/// The spool, if this process was started to be its keeper.
pub(crate) fn spool() -> Option<PathBuf> {
    let mut words = env::args_os().skip(1);
    words.next().filter(|first| first == "keeper")?;
    let folder = PathBuf::from(words.next()?);
    (folder.is_absolute() && words.next().is_none()).then_some(folder)
}

pub(crate) fn run(spool: &Path) -> Result<Exit> {
    match undaunted_runner::keeper::main(spool) {
        Ok(never) => match never {},
        Err(error) => Err(error.into()),
    }
}
