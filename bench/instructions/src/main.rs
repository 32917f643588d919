//! How many instructions the parts cost that every attempt pays for, compared with committed figures.
//!
//! A clock on a shared machine says something else every time; valgrind counts the same instructions
//! for the same program. Each case is run twice under it, once with twice as many rounds: the
//! difference is what the rounds cost, and start-up is not among it.
//!
//! `compare` fails if a case costs clearly more than the committed figure, `bless` writes the figures of
//! today, `run CASE ROUNDS` is what valgrind is given.

mod attempts;
mod case;
mod count;
mod figures;
mod policy;

use std::process::ExitCode;

use case::Case;
use figures::Figures;

/// What went wrong, to be read by people.
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
    let told = before.compare(&now);
    print!("{}", told.text);
    if told.is_worse {
        eprintln!(
            "error: something costs more than {path} says; mend it, or if it is worth it, write the figures of today:\n  \
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
    let case = Case::named(name).ok_or_else(|| format!("there is no case `{name}`"))?;
    (case.run)(rounds.parse()?)?;
    Ok(ExitCode::SUCCESS)
}
