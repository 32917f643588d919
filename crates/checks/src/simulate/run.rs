//! One simulation.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use undaunted_engine::event::Record;
use undaunted_engine::job::Job;
use undaunted_runner::breakers;
use undaunted_store::MemoryStore;

use super::case::JobCase;
use super::plan::FaultPlan;
use super::plan::SimPlan;
use super::process::{ProcessHome, SimProcess};
use super::world::{SharedWorld, SimEvent, SimWorld, lock};
use crate::random::SeededRandom;

/// The most processes of one simulation.
const PROCESSES: usize = 64;
/// More events than a simulation has that ends.
const MOST: u64 = 60_000;

#[derive(Default)]
pub struct SimOutcome {
    pub events: u64,
    pub crashes: u64,
    /// Violations.
    pub violations: Vec<String>,
    /// What happened, if that was asked for.
    pub history: Vec<String>,
    pub is_unspecified: bool,
    pub jobs: Vec<(Job, Vec<Record>)>,
}

pub fn run(plan: &SimPlan, with_history: bool) -> SimOutcome {
    let names = (0..).map(|number| format!("j{number}"));
    let cases: BTreeMap<String, JobCase> = names.zip(plan.cases.iter().cloned()).collect();
    let random = SeededRandom::new(plan.seed ^ 0x5eed);
    let mut world = SimWorld::new(random, plan.fault_plan.clone(), cases);
    world.history = with_history.then(Vec::new);
    let shared: SharedWorld = Arc::new(Mutex::new(world));
    let homes: Vec<OnceCell<ProcessHome>> = (0..PROCESSES).map(|_| OnceCell::new()).collect();
    let mut simulation = Simulation {
        shared: SharedWorld::clone(&shared),
        disk: MemoryStore::new(),
        homes: &homes,
        processes: Vec::new(),
        happened: 0,
    };
    simulation.run_events(&plan.fault_plan);
    let disk = simulation.disk.another();
    drop(simulation);
    let mut world = lock(&shared);
    let violation = world.oracle.breakers.states().find_map(|(name, state)| {
        let journal = breakers::read(&disk, name).ok().flatten();
        let same = journal.is_some_and(|journal| journal.state == *state);
        (!same).then(|| format!("what is left of the journal of {name} does not come to {state:?}"))
    });
    world.oracle.violations.extend(violation);
    let oracle = std::mem::take(&mut world.oracle);
    let jobs = oracle.jobs.into_values();
    let jobs = jobs.filter_map(|trace| Some((trace.job?, trace.records)));
    SimOutcome {
        events: oracle.events,
        is_unspecified: false,
        crashes: world.crashes,
        violations: oracle.violations,
        history: world.history.take().unwrap_or_default(),
        jobs: jobs.collect(),
    }
}

pub(super) struct Simulation<'w> {
    pub(super) shared: SharedWorld,
    pub(super) disk: MemoryStore,
    homes: &'w [OnceCell<ProcessHome>],
    /// The living processes, by number.
    pub(super) processes: Vec<Option<SimProcess<'w>>>,
    happened: u64,
}

impl Simulation<'_> {
    /// Handles events until every job has ended.
    fn run_events(&mut self, fault_plan: &FaultPlan) {
        {
            let mut world = lock(&self.shared);
            world.after(Duration::ZERO, SimEvent::StartProcess);
            for _ in 1..fault_plan.processes {
                let late = Duration::from_millis(world.random.between(0, 500));
                world.after(late, SimEvent::StartProcess);
            }
            if fault_plan.mean_interval.is_zero() {
                world.is_calm = true;
                world.faults_are_over = true;
            } else {
                let first = world.random.between(0, millis(fault_plan.mean_interval));
                world.after(Duration::from_millis(first), SimEvent::InjectFault);
                let faults_end = world.random.between(1000, 60_000);
                world.after(Duration::from_millis(faults_end), SimEvent::EndFaults);
            }
        }
        while !self.all_jobs_ended() {
            let next = lock(&self.shared).next();
            let Some(next) = next else {
                self.violation("nothing will ever happen again, and not every job is over");
                return;
            };
            self.happened += 1;
            if self.happened > MOST {
                self.violation("jobs do not come to an end");
                return;
            }
            self.handle(next);
            self.poll_woken();
            if !lock(&self.shared).oracle.violations.is_empty() {
                return;
            }
        }
    }

    fn violation(&self, what: &str) {
        let mut world = lock(&self.shared);
        let jobs = world.oracle.jobs.iter();
        let jobs: Vec<String> = jobs
            .filter(|(_, trace)| !trace.ledger.has_ended)
            .map(|(name, trace)| {
                let stage = trace.job.as_ref().map(|job| job.stage);
                format!("{name} {stage:?}")
            })
            .collect();
        let what = format!("{what}: {}", jobs.join(", "));
        world.log(|| format!("VIOLATION {what}"));
        world.oracle.violation(what);
    }

    fn all_jobs_ended(&self) -> bool {
        let world = lock(&self.shared);
        let has_ended = |job: &String| {
            let trace = world.oracle.jobs.get(job);
            trace.is_some_and(|trace| trace.ledger.has_ended)
        };
        world.cases.keys().all(has_ended)
    }

    /// Starts a process, unless there were too many.
    pub(super) fn begin(&mut self) {
        let number = self.processes.len();
        let Some(home) = self.homes.get(number) else {
            return;
        };
        let home = home.get_or_init(|| ProcessHome::new(&self.shared, number, &self.disk));
        {
            let mut world = lock(&self.shared);
            world.processes.push(super::world::ProcessState::default());
            world.log(|| format!("engine {number} begins"));
        }
        self.processes.push(Some(SimProcess::begin(home)));
        self.claim_jobs(number);
    }

    /// Whether so many processes have died that faults must end.
    pub(super) fn has_many_deaths(&self) -> bool {
        self.processes.len() >= PROCESSES.saturating_sub(24)
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
