//! Rounds, on all cores, and what they come to.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use super::found::{Found, Kind};
use super::world::World;
use super::{job_round, program, serve_round, strokes};

/// How many rounds, and where they begin.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many rounds
    #[arg(long, value_name = "N", default_value_t = 100)]
    rounds: u64,

    /// The seed of the first round; the next one has the next
    #[arg(long, value_name = "S", default_value_t = 1)]
    first_seed: u64,

    /// The program, built with the feature `failpoints` [default: it is built first]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,

    /// Where the folders of rounds are made, and those that found something stay
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
}

struct Campaign<'a> {
    args: &'a Args,
    program: PathBuf,
    actor: PathBuf,
    place: PathBuf,
    next: AtomicU64,
    found: Mutex<Found>,
    began: Instant,
}

/// Kills and compares.
#[must_use]
pub fn run(args: &Args) -> ExitCode {
    match campaign(args) {
        Ok(found) if found.violations.is_empty() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            // If even that cannot be said, the exit code does.
            drop(writeln!(io::stderr(), "error: {error}"));
            ExitCode::from(2)
        }
    }
}

fn campaign(args: &Args) -> io::Result<Found> {
    let place = args.keep.clone().unwrap_or_else(std::env::temp_dir);
    fs::create_dir_all(&place)?;
    let place = place.canonicalize()?;
    // A copy: whoever builds this program anew meanwhile takes the original away.
    let actor = place.join(format!("undaunted-kill-{}-actor", std::process::id()));
    fs::copy("/proc/self/exe", &actor)?;
    let found = rounds(args, place, &actor);
    fs::remove_file(&actor)?;
    let found = found?;
    tell(args, &found)?;
    Ok(found)
}

fn rounds(args: &Args, place: PathBuf, actor: &Path) -> io::Result<Found> {
    let program = match &args.program {
        Some(program) => program.canonicalize()?,
        None => program::build()?,
    };
    let campaign = Campaign {
        args,
        program,
        actor: actor.to_owned(),
        place,
        next: AtomicU64::new(0),
        found: Mutex::default(),
        began: Instant::now(),
    };
    let cores = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        let workers = (0..cores).map(|_| scope.spawn(|| campaign.work()));
        let workers: Vec<_> = workers.collect();
        for worker in workers {
            worker.join().map_err(|_| io::Error::other("a round has panicked"))??;
        }
        Ok::<_, io::Error>(())
    })?;
    let found = campaign.found.into_inner();
    Ok(found.unwrap_or_else(PoisonError::into_inner))
}

impl Campaign<'_> {
    fn work(&self) -> io::Result<()> {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.args.rounds {
                return Ok(());
            }
            let seed = self.args.first_seed.saturating_add(number);
            let mut found = self.round(seed)?;
            found.latest = format!("seed {seed}, {}", found.latest);
            let mut all = self.found.lock().unwrap_or_else(PoisonError::into_inner);
            all.absorb(found);
            let done = number.saturating_add(1);
            if done.is_multiple_of(10) {
                let each = self.began.elapsed().as_secs_f64() / f64::from(u32::try_from(done).unwrap_or(1));
                writeln!(io::stderr(), "{done} rounds, {each:.2} s each, {} kills", all.kills)?;
            }
        }
    }

    fn round(&self, seed: u64) -> io::Result<Found> {
        let name = format!("undaunted-kill-{}-{seed}", std::process::id());
        let folder = self.place.join(name);
        let world = World::make(folder.clone(), &self.program)?;
        // Every fifth round is one of servers.
        let found = if seed.is_multiple_of(5) {
            serve_round::round(&world, seed)
        } else {
            job_round::round(&world, seed, &self.actor)
        };
        world.clear();
        let found = found?;
        if found.violations.is_empty() {
            fs::remove_dir_all(&folder)?;
        } else {
            violated(seed, &folder, &found)?;
        }
        Ok(found)
    }
}

fn violated(seed: u64, folder: &Path, found: &Found) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for violation in &found.violations {
        writeln!(out, "seed {seed}: {violation}")?;
    }
    writeln!(out, "  again: cargo run --release -p undaunted-checks -- kill --rounds 1 --first-seed {seed}")?;
    writeln!(out, "  kept:  {}", folder.display())
}

/// The last lines.
fn tell(args: &Args, found: &Found) -> io::Result<()> {
    let mut places: BTreeMap<&str, u64> = strokes::places().map(|place| (place, 0)).collect();
    for place in &found.places {
        let times = places.entry(place).or_default();
        *times = times.saturating_add(1);
    }
    let places: Vec<String> = places.iter().map(|(place, times)| format!("{place} {times}")).collect();
    writeln!(io::stderr(), "deaths by place: {}", places.join(", "))?;
    writeln!(io::stderr(), "{} waits measured; the latest: {}", found.waits, found.latest)?;
    let mut out = io::stdout().lock();
    let unlawful = found.count(Kind::Unlawful);
    if unlawful > 0 {
        writeln!(out, "{unlawful} other violations")?;
    }
    let (lost, duplicated) = (found.count(Kind::Lost), found.count(Kind::Duplicated));
    let (rounds, kills) = (args.rounds, found.kills);
    writeln!(out, "{rounds} rounds, {kills} kills, {lost} lost, {duplicated} duplicated")?;
    writeln!(out, "largest lateness of a wait: {} ms", found.lateness.div_ceil(1000))
}
