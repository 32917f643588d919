//! Counts the instructions of the operations that every attempt needs, and compares them with recorded figures.
//!
//! Times on a shared machine vary, but valgrind counts the same instructions for the same program. It runs each
//! case twice, the second time with twice as many rounds; the difference is the cost of the rounds without
//! start-up.
//!
//! `compare` fails if a case costs clearly more than its recorded figure, `bless` records new figures, and
//! `run CASE ROUNDS` is the command that valgrind runs.

mod attempts;
mod case;
mod count;
mod figures;
mod policy;

use std::process::ExitCode;

use case::Case;
use figures::Figures;

/// An error for people.
type Failure = Box<dyn std::error::Error>;

const USAGE: &str = "usage: undaunted-bench-instructions compare|bless FIGURES, or run CASE ROUNDS";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["compare", path] => compare(path),
        ["bless", path] => bless(path),
        ["run", name, rounds] => run(name, rounds),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(2)
    })
}

fn compare(path: &str) -> Result<ExitCode, Failure> {
    let before = Figures::read(path)?;
    let now = count::all()?;
    let comparison = before.compare(&now);
    print!("{}", comparison.text);
    if comparison.is_worse {
        eprintln!(
            "error: some operations cost more than recorded in {path}; make them cheaper, or record the new figures:\n  \
             cargo run --release --manifest-path bench/Cargo.toml -p undaunted-bench-instructions -- bless {path}"
        );
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn bless(path: &str) -> Result<ExitCode, Failure> {
    let now = count::all()?;
    std::fs::write(path, now.to_string())?;
    print!("{now}");
    Ok(ExitCode::SUCCESS)
}

fn run(name: &str, rounds: &str) -> Result<ExitCode, Failure> {
    let case = Case::named(name).ok_or_else(|| format!("unknown case `{name}`"))?;
    (case.run)(rounds.parse()?)?;
    Ok(ExitCode::SUCCESS)
}
