//! The binary `undaunted`.
//!
//! Reads the command line, hands over to one command, and turns what comes back into an exit code.
//! Results go to standard output, everything else to standard error.

mod args;
mod commands;
mod environment;
mod exit;
mod jobs;
mod screen;
mod source;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};
use crate::exit::Exit;

fn main() -> ExitCode {
    let args = Args::parse();
    let store = args.store.as_deref();
    let done = match args.command {
        Command::Run(run) => commands::run::run(store, &run),
        Command::Resume(resume) => commands::resume::run(store, &resume),
        Command::Ls(ls) => commands::ls::run(store, &ls),
        Command::Show(show) => commands::show::run(store, &show),
        Command::Events(events) => commands::events::run(store, &events),
        Command::Cancel(cancel) => commands::cancel::run(store, &cancel),
        Command::Check(check) => commands::check::run(&check).map(|()| Exit::Done),
        Command::Schedule(schedule) => commands::schedule::run(&schedule).map(|()| Exit::Done),
        Command::ExplainConfig(explain) => {
            commands::explain_config::run(&explain).map(|()| Exit::Done)
        }
        Command::Schema => commands::schema::run().map(|()| Exit::Done),
        Command::Keeper(keeper) => commands::keeper::run(&keeper),
    };
    exit::code(done)
}
