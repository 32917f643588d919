//! The binary `undaunted`.
//!
//! Reads the command line, hands over to one command, and turns what comes back into an exit code.
//! Results go to standard output, everything else to standard error.

mod args;
mod commands;
mod environment;
mod exit;
mod screen;
mod source;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match args.command {
        Command::Check(check) => commands::check::run(&check),
        Command::Schedule(schedule) => commands::schedule::run(&schedule),
        Command::ExplainConfig(explain) => commands::explain_config::run(&explain),
        Command::Schema => commands::schema::run(),
    };
    exit::code(done)
}
