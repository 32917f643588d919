//! Compares recorded requests with unrecorded ones, and measures many waiting flows.
//!
//! ```text
//! cargo run --release -p undaunted-bench-http -- measure FOLDER > HTTP.md
//! ```
//!
//! The folder must be on a physical disk. Every figure comes from a separate process; for a profiler, each can be
//! run alone in one of the modes of [`run`]. The exit code is 0 whatever the figures are.

mod document;
mod flows;
mod steps;
mod waiting;

use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    run(&arguments)
}

fn run(arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    let took = match *arguments {
        ["serve"] => return steps::serve(),
        ["bare", url, width, requests] => steps::bare(url, width.parse()?, requests.parse()?)?,
        ["one", folder, url, width, items] => {
            flows::one(Path::new(folder), url, width.parse()?, items.parse()?)?
        }
        ["many", folder, url, width, number] => {
            flows::many(Path::new(folder), url, width.parse()?, number.parse()?)?
        }
        ["leave", folder, url, flows, together] => {
            waiting::leave(Path::new(folder), url, flows.parse()?, together.parse()?)?
        }
        ["resume", folder, number] => {
            let number = number.parse()?;
            document::tell_cost(&waiting::resume(Path::new(folder), number)?, number);
            return Ok(());
        }
        ["measure", folder] => return document::measure(Path::new(folder), 20_000, 5, 100_000),
        ["measure", folder, requests, rounds, flows] => {
            let (requests, rounds) = (requests.parse()?, rounds.parse()?);
            return document::measure(Path::new(folder), requests, rounds, flows.parse()?);
        }
        _ => {
            let modes = "serve | bare URL WIDTH REQUESTS | one FOLDER URL WIDTH ITEMS | \
                         many FOLDER URL WIDTH FLOWS | leave FOLDER URL FLOWS TOGETHER | \
                         resume FOLDER FLOWS | measure FOLDER [REQUESTS ROUNDS FLOWS]";
            return Err(modes.into());
        }
    };
    println!("{}", took.as_secs_f64());
    Ok(())
}
