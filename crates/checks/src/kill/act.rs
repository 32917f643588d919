//! The command that workflows of the campaign run.
//!
//! It records that it began, takes some time, records how it ends, and ends so. A file lock shows whether
//! another attempt of the same command is alive.

use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use undaunted_policy::Seed;

use super::record::{RecordLine, now, write};

#[derive(Debug, clap::Args)]
pub struct ActArgs {
    /// Record file to append to
    #[arg(long)]
    record: PathBuf,
    /// Folder of the lock files
    #[arg(long)]
    locks: PathBuf,
    /// Name of the command
    #[arg(long)]
    command: String,
    /// Longest running time, in milliseconds
    #[arg(long)]
    takes: u64,
    /// How many of a hundred attempts fail
    #[arg(long)]
    fails: u64,
    /// Seed that decides how attempts end
    #[arg(long)]
    seed: u64,
    /// Outputs of other commands
    given: Vec<String>,
}

/// How long an attempt takes, in milliseconds, and its exit code.
fn fate(args: &ActArgs, item: &str, attempt: u64) -> (u64, u8) {
    let name = args.command.bytes().chain(item.bytes());
    let place = name.fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let draws = Seed(args.seed).draws(place, attempt, 1);
    let fails = draws.between(1, 1, 100) <= args.fails;
    let code = match draws.between(2, 1, 12) {
        1 => 127,
        2..5 => 3,
        _ => 1,
    };
    (draws.between(3, 0, args.takes), if fails { code } else { 0 })
}

pub fn act(args: &ActArgs) -> ExitCode {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let number = |name: &str| variable(name).parse().unwrap_or_default();
    let run = variable("UNDAUNTED_RUN");
    let (item, token) = (variable("UNDAUNTED_ITEM"), variable("UNDAUNTED_RECEIPT_TOKEN"));
    // Held until the process has ended.
    let lock = File::create(args.locks.join(&token));
    let overlaps = lock.as_ref().is_ok_and(|lock| {
        let locked = lock.try_lock();
        matches!(locked, Err(TryLockError::WouldBlock))
    });
    let mut line = RecordLine {
        at: now(),
        pid: i32::try_from(std::process::id()).unwrap_or_default(),
        attempt: number("UNDAUNTED_ATTEMPT"),
        correlation: variable("UNDAUNTED_CORRELATION_ID"),
        command: args.command.clone(),
        start: run.rsplit(':').next().and_then(|it| it.parse().ok()).unwrap_or_default(),
        given: args.given.clone(),
        item,
        token,
        overlaps,
        code: None,
    };
    if write(&args.record, &line).is_err() {
        return ExitCode::from(99);
    }
    let (takes, code) = fate(args, &line.item, line.attempt);
    thread::sleep(Duration::from_millis(takes));
    let output = format!("out-{}-{}-{}", line.command, line.item, line.attempt);
    if writeln!(std::io::stdout(), "{output}").is_err() {
        return ExitCode::from(98);
    }
    line.at = now();
    line.code = Some(code);
    if write(&args.record, &line).is_err() {
        return ExitCode::from(99);
    }
    ExitCode::from(code)
}
