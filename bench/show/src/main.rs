//! Measures time and peak memory of every read-only command and of the reader behind them, by the number of items.
//!
//! ```text
//! cargo run --release -p undaunted-bench-show -- measure FOLDER > SHOW.md
//! ```
//!
//! The folder must be on a physical disk. Every figure comes from a separate process; for a profiler, each can be
//! run alone in one of the modes of [`run`]. The exit code is 0 whatever the figures are.

mod document;
mod filled;
mod looks;
mod measured;
mod mix;
mod reading;
mod turn;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use document::Opening;
use measured::{Measured, Setting, millis};
use mix::Mix;

/// Rounds of every size.
const ROUNDS: usize = 7;
const SIZES: [u32; 4] = [1000, 10_000, 100_000, 1_000_000];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    run(&arguments)
}

fn run(arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    match *arguments {
        ["write", folder, items, kind @ ("waiting" | "ended")] => {
            let mix = Mix { items: items.parse()?, waits: kind == "waiting" };
            filled::write(Path::new(folder), mix)
        }
        ["read", folder] => {
            for (name, took) in reading::answers(Path::new(folder))? {
                println!("{} {name}", millis(took));
            }
            Ok(())
        }
        ["alone", ref command @ ..] => turn::alone(command),
        ["measure", "--quick", folder] => measure(folder, None, true),
        ["measure", "--quick", folder, undaunted] => measure(folder, Some(undaunted), true),
        ["measure", folder] => measure(folder, None, false),
        ["measure", folder, undaunted] => measure(folder, Some(undaunted), false),
        _ => {
            let modes = "write FOLDER ITEMS waiting|ended | read FOLDER | alone COMMAND… | \
                         measure [--quick] FOLDER [UNDAUNTED]; --quick leaves out a million items";
            Err(modes.into())
        }
    }
}

fn measure(folder: &str, undaunted: Option<&str>, is_quick: bool) -> Result<(), Box<dyn Error>> {
    let undaunted = undaunted.map_or_else(released, PathBuf::from);
    let version = Command::new(&undaunted).arg("--version").output();
    let version = version.map_err(|error| format!("{}: {error}", undaunted.display()))?;
    let version = String::from_utf8(version.stdout)?;
    let sizes = SIZES.split_last().filter(|_| is_quick);
    let sizes = sizes.map_or(SIZES.as_slice(), |(_, sizes)| sizes).to_vec();
    let setting = Setting { undaunted, folder: folder.into(), sizes, rounds: ROUNDS };
    let all = |waits| {
        let sizes = setting.sizes.iter();
        let all = sizes.map(|items| setting.measure(*items, waits));
        all.collect::<Result<Vec<Measured>, _>>()
    };
    let (waiting, ended) = (all(true)?, all(false)?);
    let opening =
        Opening { is_quick, rounds: ROUNDS, machine: machine(), version: version.trim().to_owned() };
    print!("{}", document::document(&opening, &waiting, &ended)?);
    Ok(())
}

/// The program that `cargo build --release -p undaunted` builds.
fn released() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| "../target".into());
    target.join("release/undaunted")
}

fn machine() -> String {
    use undaunted_bench_figures::machine::{cores, kernel, processor};
    format!("{}, {} cores, {}", processor(), cores(), kernel())
}
