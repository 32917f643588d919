//! The campaigns: checks that go on for as long as one likes, each from seeds that can be repeated.
//!
//! Results on stdout, progress and rates on stderr. Exit 0: nothing was found; 1: something was; 2: the
//! arguments are not understood.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use undaunted_checks::powercut;

/// Campaigns against the promises of Undaunted.
#[derive(Debug, Parser)]
#[command(name = "undaunted-checks")]
struct Arguments {
    #[command(subcommand)]
    check: Check,
}

#[derive(Debug, Subcommand)]
enum Check {
    /// Cuts the power of a store wherever it syncs, and opens what the disk may hold then
    Powercut(powercut::Args),
}

fn main() -> ExitCode {
    match Arguments::parse().check {
        Check::Powercut(args) => powercut::run(&args),
    }
}
