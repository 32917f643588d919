//! One simulation, from its plan to what was seen.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use undaunted_engine::event::Record;
use undaunted_engine::job::Job;
use undaunted_runner::breakers;
use undaunted_store::MemoryStore;

use super::case::Case;
use super::harm::Harm;
use super::outside::{Happening, Outside, Shared, look};
use super::plan::Plan;
use super::process::{Home, Process};
use crate::die::Die;

/// The most processes of one simulation.
const PROCESSES: usize = 64;
/// More than ever happens in a simulation that ends.
const MOST: u64 = 60_000;

/// What came of a simulation.
#[derive(Default)]
pub struct Outcome {
    /// How many records there were.
    pub events: u64,
    /// How often something died.
    pub crashes: u64,
    /// Laws that do not hold.
    pub found: Vec<String>,
    /// What happened, if that was asked for.
    pub history: Vec<String>,
    /// Whether the model cannot say what must come of it.
    pub is_open: bool,
    /// The jobs and their records.
    pub jobs: Vec<(Job, Vec<Record>)>,
}

/// Simulates a plan.
#[must_use]
pub fn run(plan: &Plan, with_history: bool) -> Outcome {
    let names = (0..).map(|number| format!("j{number}"));
    let cases: BTreeMap<String, Case> = names.zip(plan.cases.iter().cloned()).collect();
    let die = Die::new(plan.seed ^ 0x5eed);
    let mut outside = Outside::new(die, plan.harm.clone(), cases);
    outside.history = with_history.then(Vec::new);
    let shared: Shared = Arc::new(Mutex::new(outside));
    let homes: Vec<OnceCell<Home>> = (0..PROCESSES).map(|_| OnceCell::new()).collect();
    let mut simulation = Simulation {
        shared: Shared::clone(&shared),
        disk: MemoryStore::new(),
        homes: &homes,
        processes: Vec::new(),
        happened: 0,
    };
    simulation.live(&plan.harm);
    let disk = simulation.disk.another();
    drop(simulation);
    let mut outside = look(&shared);
    let wrong = outside.witness.gates.states().find_map(|(name, state)| {
        let found = breakers::read(&disk, name).ok().flatten();
        let same = found.is_some_and(|found| found.state == *state);
        (!same).then(|| format!("what is left of the journal of {name} does not come to {state:?}"))
    });
    outside.witness.found.extend(wrong);
    let witness = std::mem::take(&mut outside.witness);
    let jobs = witness.jobs.into_values();
    let jobs = jobs.filter_map(|seen| Some((seen.job?, seen.records)));
    Outcome {
        events: witness.events,
        is_open: false,
        crashes: outside.crashes,
        found: witness.found,
        history: outside.history.take().unwrap_or_default(),
        jobs: jobs.collect(),
    }
}

/// A simulation that runs.
pub(super) struct Simulation<'w> {
    pub(super) shared: Shared,
    pub(super) disk: MemoryStore,
    homes: &'w [OnceCell<Home>],
    /// Those that live, by their numbers.
    pub(super) processes: Vec<Option<Process<'w>>>,
    happened: u64,
}

impl Simulation<'_> {
    /// Whatever happens, until every job is over.
    fn live(&mut self, harm: &Harm) {
        {
            let mut outside = look(&self.shared);
            outside.after(Duration::ZERO, Happening::Begin);
            for _ in 1..harm.processes {
                let late = Duration::from_millis(outside.die.between(0, 500));
                outside.after(late, Happening::Begin);
            }
            if harm.every.is_zero() {
                outside.is_calm = true;
                outside.is_healed = true;
            } else {
                let first = outside.die.between(0, millis(harm.every));
                outside.after(Duration::from_millis(first), Happening::Harm);
                let healed = outside.die.between(1000, 60_000);
                outside.after(Duration::from_millis(healed), Happening::Heal);
            }
        }
        while !self.is_over() {
            let next = look(&self.shared).next();
            let Some(next) = next else {
                self.violation("nothing will ever happen again, and not every job is over");
                return;
            };
            self.happened = self.happened.saturating_add(1);
            if self.happened > MOST {
                self.violation("jobs do not come to an end");
                return;
            }
            self.happen(next);
            self.settle();
            if !look(&self.shared).witness.found.is_empty() {
                return;
            }
        }
    }

    fn violation(&self, what: &str) {
        let mut outside = look(&self.shared);
        let jobs = outside.witness.jobs.iter();
        let jobs: Vec<String> = jobs
            .filter(|(_, seen)| !seen.ledger.is_over)
            .map(|(name, seen)| {
                let stage = seen.job.as_ref().map(|job| job.stage);
                format!("{name} {stage:?}")
            })
            .collect();
        let what = format!("{what}: {}", jobs.join(", "));
        outside.tell(|| format!("VIOLATION {what}"));
        outside.witness.violation(what);
    }

    /// Whether every job is over, and nobody holds one that should be.
    fn is_over(&self) -> bool {
        let outside = look(&self.shared);
        let is_over = |job: &String| {
            let seen = outside.witness.jobs.get(job);
            seen.is_some_and(|seen| seen.ledger.is_over)
        };
        outside.cases.keys().all(is_over)
    }

    /// The next process begins, unless there were too many.
    pub(super) fn begin(&mut self) {
        let number = self.processes.len();
        let Some(home) = self.homes.get(number) else {
            return;
        };
        let home = home.get_or_init(|| Home::new(&self.shared, number, &self.disk));
        {
            let mut outside = look(&self.shared);
            outside.lives.push(super::outside::Life::default());
            outside.tell(|| format!("engine {number} begins"));
        }
        self.processes.push(Some(Process::begin(home)));
        self.adopt(number);
    }

    /// Whether so many processes have died that no more may.
    pub(super) fn is_spent(&self) -> bool {
        self.processes.len() >= PROCESSES.saturating_sub(24)
    }
}

/// A duration in milliseconds.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
