//! `undaunted keeper`: the process that starts commands. Not for people.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::exit::Exit;

/// Where the keeper keeps what it knows.
#[derive(Debug, Args)]
pub(crate) struct KeeperArgs {
    /// The spool
    #[arg(value_name = "FOLDER")]
    spool: PathBuf,
}

pub(crate) fn run(args: &KeeperArgs) -> Result<Exit> {
    match undaunted_runner::keeper::main(&args.spool) {
        Ok(never) => match never {},
        Err(error) => Err(error.into()),
    }
}
