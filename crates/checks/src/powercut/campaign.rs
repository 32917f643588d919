//! Many rounds, on all cores.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use tempfile::TempDir;

use super::disk::Promise;
use super::round::Round;
use super::vfs;

/// What to cut.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// How many recordings to make and cut
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub rounds: u64,
    /// The seed of the first; each further one has the next
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub first_seed: u64,
    /// Whether the disk keeps its word; otherwise something has to be found
    #[arg(long, value_enum, default_value_t)]
    pub promise: Promise,
}

/// What a campaign came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Recordings made.
    pub rounds: u64,
    /// Times the power was cut.
    pub cuts: u64,
    /// Times that something was wrong afterwards.
    pub lost: u64,
    /// The seeds of the rounds with something wrong, and what was wrong first.
    pub wrong: Vec<(u64, String)>,
}

/// Runs a campaign, and prints what it came to.
#[must_use]
pub fn run(args: &Args) -> ExitCode {
    let began = Instant::now();
    let mut told = 0;
    let played = campaign(args, Some(&std::env::temp_dir()), |tally| {
        // At once, for those who do not wait for the end of a long campaign.
        for (seed, what) in tally.wrong.iter().skip(told) {
            eprintln!("seed {seed}: {what}");
        }
        told = tally.wrong.len();
        if tally.rounds.is_multiple_of(100) {
            let seconds = began.elapsed().as_secs();
            eprintln!("{} rounds, {} cuts in {seconds} s", tally.rounds, tally.cuts);
        }
    });
    let tally = match played {
        Ok(tally) => tally,
        Err(error) => {
            eprintln!("error: the power could not be cut: {error}");
            return ExitCode::FAILURE;
        }
    };
    let seconds = began.elapsed().as_secs_f64();
    eprintln!("{seconds:.1} s");
    if print(args, &tally).is_err() || tally.lost > 0 {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn print(args: &Args, tally: &Tally) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for (seed, what) in &tally.wrong {
        writeln!(out, "seed {seed}: {what}")?;
        let mut again =
            format!("cargo run --release -p undaunted-checks -- powercut --rounds 1 --first-seed {seed}");
        if args.promise != Promise::Kept {
            again = format!("{again} --promise {}", args.promise.word());
        }
        writeln!(out, "  again: {again}")?;
    }
    let Tally { rounds, cuts, lost, .. } = tally;
    writeln!(out, "{rounds} rounds, {cuts} cuts, {lost} lost")
}

/// Runs a campaign, and tells what it has come to after each round. The files of a cut after which
/// something was wrong are left in `keep`.
///
/// # Errors
///
/// If there is no room to work in, or SQLite does not let itself be recorded.
pub fn campaign(args: &Args, keep: Option<&Path>, mut after_each: impl FnMut(&Tally)) -> io::Result<Tally> {
    if !vfs::install() {
        return Err(io::Error::other("SQLite does not take our VFS"));
    }
    let scratch = scratch()?;
    // SQLite resolves links before it opens a file.
    let folder = scratch.path().canonicalize()?;
    let next = AtomicU64::new(0);
    let (tell, told) = mpsc::channel();
    let mut tally = Tally::default();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            let (tell, next, folder) = (tell.clone(), &next, &folder);
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= args.rounds {
                        break;
                    }
                    let seed = args.first_seed.wrapping_add(number);
                    let round = played(args, seed, folder, keep.map(Path::to_owned));
                    // The receiver outlives us.
                    let _ = tell.send(round);
                }
            });
        }
        drop(tell);
        for round in told {
            let lost = u64::try_from(round.wrong.len()).unwrap_or(u64::MAX);
            tally.rounds = tally.rounds.saturating_add(1);
            tally.cuts = tally.cuts.saturating_add(round.cuts);
            tally.lost = tally.lost.saturating_add(lost);
            let first = round.wrong.into_iter().next();
            tally.wrong.extend(first.map(|first| (round.seed, first)));
            after_each(&tally);
        }
    });
    tally.wrong.sort();
    Ok(tally)
}

fn played(args: &Args, seed: u64, scratch: &Path, keep: Option<PathBuf>) -> Round {
    let mut round = Round {
        seed,
        promise: args.promise,
        scratch: scratch.join(seed.to_string()),
        keep,
        cuts: 0,
        wrong: vec![],
    };
    round.play();
    round
}

/// In memory if there is such a place: what is cut off is decided here, not by a disk.
fn scratch() -> io::Result<TempDir> {
    let memory = Path::new("/dev/shm");
    if memory.is_dir()
        && let Ok(folder) = TempDir::new_in(memory)
    {
        return Ok(folder);
    }
    TempDir::new()
}
