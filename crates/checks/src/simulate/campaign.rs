//! Many seeds on all cores, and the summary of what was found.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use undaunted_engine::mutant::{self, Mutant};

use super::plan::SimPlan;
use super::seed::{SimFinding, check_seed, history, shrink};
use crate::campaign::{for_each_seed, repeat_command};

/// How many violations are shown with their history.
const SHOWN: usize = 3;
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// Simulate jobs while faults are injected
#[derive(Clone, Debug, clap::Args)]
pub struct SimulateArgs {
    /// First seed
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    pub first_seed: u64,
    /// Number of seeds
    #[arg(long, default_value_t = 1000, value_name = "NUMBER")]
    pub seeds: u64,
    /// Run with a mutant of the engine, to see that it is found
    #[arg(long, value_name = "MUTANT", value_parser = parse_mutant, hide = true)]
    pub mutant: Option<Mutant>,
}

fn parse_mutant(name: &str) -> Result<Mutant, String> {
    let all = || Mutant::HYPOTHETICAL.into_iter().chain(Mutant::PAST_BUGS);
    let found = all().find(|mutant| format!("{mutant:?}").eq_ignore_ascii_case(name));
    found.ok_or_else(|| format!("the mutants are {:?}", all().collect::<Vec<_>>()))
}

#[derive(Clone, Debug, Default)]
struct SimTally {
    seeds: u64,
    events: u64,
    crashes: u64,
    /// Seeds of which the model predicts nothing.
    unspecified: u64,
    findings: Vec<(u64, SimFinding)>,
}

pub fn run(args: &SimulateArgs) -> ExitCode {
    let tally = match simulate(args) {
        Ok(tally) => tally,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    mutant::choose(args.mutant);
    match print(args, &tally) {
        Ok(()) if tally.findings.is_empty() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn simulate(args: &SimulateArgs) -> io::Result<SimTally> {
    let (began, mut printed) = (Instant::now(), Instant::now());
    let mut tally = SimTally::default();
    let round = |seed| {
        // The choice belongs to the thread.
        mutant::choose(args.mutant);
        check_seed(seed)
    };
    for_each_seed(args.first_seed, args.seeds, round, |seed, result| {
        tally.seeds += 1;
        tally.events += result.events;
        tally.unspecified += u64::from(result.is_unspecified);
        tally.crashes += result.crashes;
        if let Some(finding) = result.finding {
            eprintln!("seed {seed}: {}", finding.what);
            tally.findings.push((seed, finding));
        }
        if printed.elapsed() >= PROGRESS_INTERVAL {
            printed = Instant::now();
            print_progress(&tally, began.elapsed());
        }
        Ok(())
    })?;
    print_progress(&tally, began.elapsed());
    tally.findings.sort_by_key(|(seed, _)| *seed);
    Ok(tally)
}

fn print_progress(tally: &SimTally, took: Duration) {
    let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).max(1);
    let rate = tally.seeds.saturating_mul(1000) / millis;
    let SimTally { seeds, unspecified, .. } = tally;
    let found = tally.findings.len();
    eprintln!("{seeds} seeds, {rate} a second, {found} violations, {unspecified} without a prediction");
}

fn print(args: &SimulateArgs, tally: &SimTally) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for (seed, finding) in tally.findings.iter().take(SHOWN) {
        show(&mut out, args, *seed, finding)?;
    }
    for (seed, _) in tally.findings.iter().skip(SHOWN) {
        writeln!(out, "seed {seed} too: {}", repeat(args, *seed))?;
    }
    let SimTally { seeds, events, crashes, findings, .. } = tally;
    writeln!(out, "{seeds} seeds, {events} events, {crashes} crashes, {} violations", findings.len())
}

fn repeat(args: &SimulateArgs, seed: u64) -> String {
    let mutant = args.mutant.map_or_else(String::new, |it| format!(" --mutant {it:?}"));
    repeat_command(&format!("simulate --first-seed {seed} --seeds 1{mutant}"))
}

/// Prints a violation, how to repeat it, and the history of a smaller simulation that shows it.
fn show(out: &mut impl Write, args: &SimulateArgs, seed: u64, finding: &SimFinding) -> io::Result<()> {
    let (smaller, least) = shrink(&SimPlan::of(seed), finding.clone());
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
