//! Proof that anyone can repeat: `cargo run --release -p undaunted-checks -- kill --rounds 100`.
//!
//! Results go to standard output, progress to standard error. Exit codes: 0 nothing was found, 1
//! something was, 2 the arguments are wrong or the check could not be made.

use std::process::ExitCode;

use clap::Parser;
use undaunted_checks::kill;

/// Checks of the whole product.
#[derive(Debug, Parser)]
#[command(name = "undaunted-checks")]
enum Check {
    /// Kills the built program, again and again, and compares its journal with what really ran
    Kill(kill::Args),
    /// Acts as a command of a workflow
    #[command(hide = true)]
    Act(kill::ActArgs),
}

fn main() -> ExitCode {
    match Check::parse() {
        Check::Kill(args) => kill::run(&args),
        Check::Act(args) => kill::act(&args),
    }
}
