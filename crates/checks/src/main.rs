//! The campaigns: `cargo run --release -p undaunted-checks -- simulate --seeds 1000`.
//!
//! Results go to standard output, progress to standard error. Exit codes: 0 for no violation, 1 for
//! violations, 2 if the arguments are wrong or the check could not run.

use std::process::ExitCode;

use clap::Parser;
use undaunted_checks::{kill, powercut, simulate};

/// Checks of the whole product
#[derive(Debug, Parser)]
#[command(name = "undaunted-checks", version)]
enum ChecksCommand {
    /// Run jobs on virtual time while faults are injected, and check every record
    Simulate(simulate::SimulateArgs),
    /// Kill the built program repeatedly, and compare its journal with what really ran
    Kill(kill::KillArgs),
    /// Cut the power at every sync of the store, and check what is left
    Powercut(powercut::PowercutArgs),
    /// Act as a command of a workflow
    #[command(hide = true)]
    Act(kill::ActArgs),
}

fn main() -> ExitCode {
    match ChecksCommand::parse() {
        ChecksCommand::Simulate(args) => simulate::check(&args),
        ChecksCommand::Kill(args) => kill::run(&args),
        ChecksCommand::Powercut(args) => powercut::run(&args),
        ChecksCommand::Act(args) => kill::act(&args),
    }
}
