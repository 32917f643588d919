//! The rounds of the power cut campaign, and the summary of what they found.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use tempfile::TempDir;

use super::disk::SyncPromise;
use super::round::PowercutRound;
use super::vfs;
use crate::campaign::{for_each_seed, repeat_command};

#[derive(Clone, Debug, clap::Args)]
pub struct PowercutArgs {
    /// Number of recordings to make and cut
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub rounds: u64,
    /// Seed of the first recording; each further one uses the next seed
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub first_seed: u64,
    /// What the simulated disk makes of a sync; with any value but `kept` the campaign must find losses
    #[arg(long, value_enum, default_value_t)]
    pub promise: SyncPromise,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PowercutTally {
    pub rounds: u64,
    pub cuts: u64,
    /// Cuts after which something was wrong.
    pub lost: u64,
    /// The seeds of the rounds with violations, each with its first violation.
    pub violations: Vec<(u64, String)>,
}

pub fn run(args: &PowercutArgs) -> ExitCode {
    let began = Instant::now();
    let mut printed = 0;
    let result = campaign(args, Some(&std::env::temp_dir()), |tally| {
        // At once: a long campaign may be interrupted before its end.
        for (seed, what) in tally.violations.iter().skip(printed) {
            eprintln!("seed {seed}: {what}");
        }
        printed = tally.violations.len();
        if tally.rounds.is_multiple_of(100) {
            let seconds = began.elapsed().as_secs();
            eprintln!("{} rounds, {} cuts in {seconds} s", tally.rounds, tally.cuts);
        }
    });
    let tally = match result {
        Ok(tally) => tally,
        Err(error) => {
            eprintln!("error: cannot run the power cuts: {error}");
            return ExitCode::FAILURE;
        }
    };
    eprintln!("{:.1} s", began.elapsed().as_secs_f64());
    if print(args, &tally).is_err() || tally.lost > 0 {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn print(args: &PowercutArgs, tally: &PowercutTally) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for (seed, what) in &tally.violations {
        let mut again = format!("powercut --rounds 1 --first-seed {seed}");
        if args.promise != SyncPromise::Kept {
            again = format!("{again} --promise {}", args.promise.word());
        }
        writeln!(out, "seed {seed}: {what}")?;
        writeln!(out, "  again: {}", repeat_command(&again))?;
    }
    let PowercutTally { rounds, cuts, lost, .. } = tally;
    writeln!(out, "{rounds} rounds, {cuts} cuts, {lost} lost")
}

/// Runs a campaign and calls `after_each` after each round. The files of a cut after which something was
/// wrong are left in `keep`.
pub fn campaign(
    args: &PowercutArgs,
    keep: Option<&Path>,
    mut after_each: impl FnMut(&PowercutTally),
) -> io::Result<PowercutTally> {
    if !vfs::install() {
        return Err(io::Error::other("SQLite refuses the recording VFS"));
    }
    let scratch = scratch_folder()?;
    // SQLite resolves links before it opens a file.
    let folder = scratch.path().canonicalize()?;
    let mut tally = PowercutTally::default();
    let round = |seed: u64| {
        let mut round = PowercutRound {
            seed,
            promise: args.promise,
            scratch: folder.join(seed.to_string()),
            keep: keep.map(Path::to_owned),
            cuts: 0,
            violations: vec![],
        };
        round.play();
        round
    };
    for_each_seed(args.first_seed, args.rounds, round, |seed, round| {
        tally.rounds += 1;
        tally.cuts += round.cuts;
        tally.lost += u64::try_from(round.violations.len()).unwrap_or(u64::MAX);
        tally.violations.extend(round.violations.into_iter().next().map(|first| (seed, first)));
        after_each(&tally);
        Ok(())
    })?;
    tally.violations.sort();
    Ok(tally)
}

/// In memory if there is such a folder: what a cut leaves is decided here, not by a disk.
fn scratch_folder() -> io::Result<TempDir> {
    let memory = Path::new("/dev/shm");
    if memory.is_dir()
        && let Ok(folder) = TempDir::new_in(memory)
    {
        return Ok(folder);
    }
    TempDir::new()
}
