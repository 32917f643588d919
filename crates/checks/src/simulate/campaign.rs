//! Many seeds, on all processors.

use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use undaunted_engine::mutant::{self, Mutant};

use super::plan::Plan;
use super::seed::{Finding, history, of_seed};
use super::shrink::shrink;

/// How many violations are shown in full.
const SHOWN: usize = 3;
/// How often the progress is told.
const TELL: Duration = Duration::from_secs(10);

/// Simulate jobs in a world in which everything goes wrong
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The first seed
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    pub first_seed: u64,
    /// How many seeds
    #[arg(long, default_value_t = 1000, value_name = "NUMBER")]
    pub seeds: u64,
    /// Let the engine make a mistake, to see it found
    #[arg(long, value_name = "MISTAKE", value_parser = mistake, hide = true)]
    pub mutant: Option<Mutant>,
}

fn mistake(name: &str) -> Result<Mutant, String> {
    let all = || Mutant::HYPOTHETICAL.into_iter().chain(Mutant::PAST_BUGS);
    let found = all().find(|mutant| format!("{mutant:?}").eq_ignore_ascii_case(name));
    found.ok_or_else(|| format!("the mistakes are {:?}", all().collect::<Vec<_>>()))
}

/// What many seeds came to.
#[derive(Clone, Debug, Default)]
struct Sum {
    seeds: u64,
    events: u64,
    crashes: u64,
    /// Jobs of which the model cannot say what must come of them.
    open: u64,
    found: Vec<(u64, Finding)>,
}

/// Simulates the seeds, and says what was found.
#[must_use]
pub fn run(args: &Args) -> ExitCode {
    let sum = simulated(args);
    mutant::choose(args.mutant);
    let mut out = std::io::stdout().lock();
    for (seed, finding) in sum.found.iter().take(SHOWN) {
        // Nobody reads what cannot be written.
        drop(show(&mut out, args, *seed, finding));
    }
    for (seed, _) in sum.found.iter().skip(SHOWN) {
        drop(writeln!(out, "seed {seed} too: {}", repeat(args, *seed)));
    }
    let line = format!(
        "{} seeds, {} events, {} crashes, {} violations",
        sum.seeds,
        sum.events,
        sum.crashes,
        sum.found.len()
    );
    drop(writeln!(out, "{line}"));
    if sum.found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn simulated(args: &Args) -> Sum {
    let began = Instant::now();
    let next = AtomicU64::new(0);
    let sum = Mutex::new((Sum::default(), began));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                mutant::choose(args.mutant);
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= args.seeds {
                        break;
                    }
                    let seed = args.first_seed.saturating_add(number);
                    let came = of_seed(seed);
                    let mut guard = sum.lock().unwrap_or_else(PoisonError::into_inner);
                    let (sum, told) = &mut *guard;
                    sum.seeds = sum.seeds.saturating_add(1);
                    sum.events = sum.events.saturating_add(came.events);
                    sum.open = sum.open.saturating_add(u64::from(came.open));
                    sum.crashes = sum.crashes.saturating_add(came.crashes);
                    if let Some(finding) = came.finding {
                        eprintln!("seed {seed}: {}", finding.what);
                        sum.found.push((seed, finding));
                    }
                    if told.elapsed() >= TELL {
                        *told = Instant::now();
                        tell(sum, began.elapsed());
                    }
                }
            });
        }
    });
    let (mut sum, _) = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    tell(&sum, began.elapsed());
    sum.found.sort_by_key(|(seed, _)| *seed);
    sum
}

fn tell(sum: &Sum, took: Duration) {
    let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).max(1);
    let rate = sum.seeds.saturating_mul(1000) / millis;
    let found = sum.found.len();
    eprintln!("{} seeds, {rate} a second, {found} violations, {} without a prediction", sum.seeds, sum.open);
}

/// The command that repeats a seed.
fn repeat(args: &Args, seed: u64) -> String {
    let mistake = args.mutant.map_or_else(String::new, |it| format!(" --mutant {it:?}"));
    format!("cargo run --release -p undaunted-checks -- simulate --first-seed {seed} --seeds 1{mistake}")
}

/// A violation: what, how to repeat it, and the history of a smaller simulation that shows it.
fn show(out: &mut impl Write, args: &Args, seed: u64, finding: &Finding) -> std::io::Result<()> {
    let plan = Plan::of(seed);
    let (smaller, least) = shrink(&plan, finding.clone());
    writeln!(out, "seed {seed}: {}", finding.what)?;
    writeln!(out, "  repeat: {}", repeat(args, seed))?;
    writeln!(out, "  a smaller simulation, in which this happens: {}", least.what)?;
    for case in &smaller.cases {
        for line in case.text().lines() {
            writeln!(out, "    | {line}")?;
        }
    }
    for line in history(&smaller, least.is_calm) {
        writeln!(out, "    {line}")?;
    }
    Ok(())
}
