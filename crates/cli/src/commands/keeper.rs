//! `undaunted keeper FOLDER`: the process that starts commands. Not for people.
//!
//! Every job with programs starts one and waits for it, so `main` recognises it before clap is set up, which
//! would take longer than everything else until it is ready.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::exit::Exit;

/// The spool, if this process was started as its keeper.
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
