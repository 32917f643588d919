//! Counts instructions with valgrind.

use std::process::{Command, Stdio};

use crate::Failure;
use crate::case::{CASES, Case};
use crate::figures::Figures;

/// The instructions of every case, for one round.
pub(crate) fn all() -> Result<Figures, Failure> {
    let mut figures = Figures::default();
    for case in &CASES {
        figures.add(case.name, round(case)?);
    }
    Ok(figures)
}

fn round(case: &Case) -> Result<u64, Failure> {
    let once = instructions(case, case.rounds)?;
    let twice = instructions(case, case.rounds.saturating_mul(2))?;
    let rounds = u64::from(case.rounds);
    Ok(twice.saturating_sub(once) / rounds.max(1))
}

fn instructions(case: &Case, rounds: u32) -> Result<u64, Failure> {
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .args(["run", case.name, &rounds.to_string()])
        // The allocator must not depend on the environment.
        .env_clear()
        .stdin(Stdio::null());
    let output = valgrind
        .output()
        .map_err(|error| format!("cannot run valgrind: {error}; install the package `valgrind`"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("`{}` failed under valgrind:\n{said}", case.name).into());
    }
    let found = said.lines().find_map(|line| {
        let (_, number) = line.split_once("Collected :")?;
        number.trim().parse().ok()
    });
    found.ok_or_else(|| format!("valgrind printed no count:\n{said}").into())
}
