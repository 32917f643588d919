//! Many simulations.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::plan::Plan;
use super::run::{Outcome, run as simulate};

/// Simulate jobs in a world in which everything goes wrong
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The first seed
    #[arg(long, default_value_t = 1)]
    pub first_seed: u64,
    /// How many seeds
    #[arg(long, default_value_t = 1000)]
    pub seeds: u64,
}

/// What many seeds came to.
#[derive(Clone, Debug, Default)]
struct Sum {
    events: u64,
    crashes: u64,
    /// The seeds with violations, and the first of each.
    found: Vec<(u64, String)>,
}

/// Simulates the seeds, and says what was found.
#[must_use]
pub fn run(args: &Args) -> ExitCode {
    let began = Instant::now();
    let next = AtomicU64::new(0);
    let sum = Mutex::new(Sum::default());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= args.seeds {
                        break;
                    }
                    let seed = args.first_seed.saturating_add(number);
                    let (calm, storm) = of_seed(seed);
                    let Ok(mut sum) = sum.lock() else { break };
                    for outcome in [calm, storm] {
                        sum.events = sum.events.saturating_add(outcome.events);
                        sum.crashes = sum.crashes.saturating_add(outcome.crashes);
                        if let Some(first) = outcome.found.first() {
                            sum.found.push((seed, first.clone()));
                        }
                    }
                    if number % 1000 == 999 {
                        let rate = 1000.0_f64.mul_add(0.0, number as f64) / began.elapsed().as_secs_f64();
                        eprintln!("{number} seeds, {rate:.0} a second, {} violations", sum.found.len());
                    }
                }
            });
        }
    });
    let mut sum = sum.into_inner().unwrap_or_default();
    sum.found.sort();
    for (seed, what) in sum.found.iter().take(10) {
        println!("seed {seed}: {}", what.chars().take(600).collect::<String>());
    }
    let took = began.elapsed().max(Duration::from_millis(1));
    eprintln!("{:.0} seeds a second", args.seeds as f64 / took.as_secs_f64());
    println!("{} seeds, {} events, {} crashes, {} violations", args.seeds, sum.events, sum.crashes, sum.found.len());
    if sum.found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn of_seed(seed: u64) -> (Outcome, Outcome) {
    let plan = Plan::of(seed);
    let calm = simulate(&plan.calm(), false);
    let storm = simulate(&plan, std::env::var_os("HISTORY").is_some());
    for line in &storm.history { eprintln!("{line}"); }
    (calm, storm)
}
