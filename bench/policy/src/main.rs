//! Measures all contestants in seven alternating rounds and prints a document.
//!
//! ```text
//! cargo run --release -p undaunted-bench-policy > POLICY.md
//! ```
//!
//! Progress goes to stderr, the document to stdout. A missed target is printed as missed and is no error: the
//! exit code is 0 whatever the figures are.

mod machine;
mod report;
mod rounds;

use std::error::Error;
use std::io::Write;

use machine::Machine;

fn main() -> Result<(), Box<dyn Error>> {
    let load_before = undaunted_bench_figures::machine::load();
    let mut measured = Vec::new();
    for group in undaunted_bench_policy::groups()? {
        eprintln!("{}: {} contestants", group.name, group.contestants.len());
        measured.push(rounds::measure(group));
    }
    let machine = Machine::look(&load_before);
    let document = report::document(&machine, &measured)?;
    std::io::stdout().write_all(document.as_bytes())?;
    Ok(())
}
