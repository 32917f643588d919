//! Proof that can be repeated: simulations, kills, power cuts.

use std::process::ExitCode;

use clap::Parser;
use undaunted_checks::simulate;

/// Checks of the whole, for as long as one likes. Results on stdout, progress on stderr.
#[derive(Debug, Parser)]
#[command(name = "undaunted-checks", version)]
enum Check {
    Simulate(simulate::Args),
}

fn main() -> ExitCode {
    match Check::parse() {
        Check::Simulate(args) => simulate::check(&args),
    }
}
