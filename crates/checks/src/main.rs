//! Proof that anyone can repeat: `cargo run --release -p undaunted-checks -- simulate --seeds 1000`.
//!
//! Results go to standard output, progress to standard error. Exit codes: 0 nothing was found, 1
//! something was, 2 the arguments are wrong or the check could not be made.

use std::process::ExitCode;

use clap::Parser;
use undaunted_checks::{kill, powercut, simulate};

/// Checks of the whole product
#[derive(Debug, Parser)]
#[command(name = "undaunted-checks", version)]
enum Check {
    /// Runs jobs on virtual time in a world in which everything goes wrong, and looks at every record
    Simulate(simulate::SimulateArgs),
    /// Kills the built program, again and again, and compares its journal with what really ran
    Kill(kill::KillArgs),
    /// Cuts the power at every sync of the store, and looks at what is still there
    Powercut(powercut::PowercutArgs),
    /// Acts as a command of a workflow
    #[command(hide = true)]
    Act(kill::ActArgs),
}

fn main() -> ExitCode {
    match Check::parse() {
        Check::Simulate(args) => simulate::check(&args),
        Check::Kill(args) => kill::run(&args),
        Check::Powercut(args) => powercut::run(&args),
        Check::Act(args) => kill::act(&args),
    }
}
