//! What a seed stands for: jobs, and the faults while they run.

use std::time::Duration;

use super::case::JobCase;
use crate::random::SeededRandom;

#[derive(Clone, Debug)]
pub struct SimPlan {
    /// The seed of the faults.
    pub seed: u64,
    pub cases: Vec<JobCase>,
    pub fault_plan: FaultPlan,
}

impl SimPlan {
    pub fn of(seed: u64) -> Self {
        let mut random = SeededRandom::new(seed);
        let jobs = if random.chance(1, 3) { random.between(2, 3) } else { 1 };
        let cases = (0..jobs).map(|_| JobCase::drawn(&mut random)).collect();
        let fault_plan = FaultPlan::drawn(&mut random);
        Self { seed, cases, fault_plan }
    }

    /// The first of its jobs, without faults.
    pub fn calm(&self) -> Self {
        Self {
            seed: self.seed,
            cases: self.cases.first().cloned().into_iter().collect(),
            fault_plan: FaultPlan::none(),
        }
    }

    /// All plans that are smaller in one respect.
    pub fn smaller(&self) -> Vec<Self> {
        let mut found = Vec::new();
        if self.cases.len() > 1 {
            for place in 0..self.cases.len() {
                let mut less = self.clone();
                less.cases.remove(place);
                found.push(less);
            }
        }
        for fault_plan in self.fault_plan.smaller() {
            found.push(Self { fault_plan, ..self.clone() });
        }
        for (place, case) in self.cases.iter().enumerate() {
            for smaller in case.smaller() {
                let mut less = self.clone();
                if let Some(case) = less.cases.get_mut(place) {
                    *case = smaller;
                }
                found.push(less);
            }
        }
        found
    }
}

/// How often each fault happens, in 100 000 occasions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// A process is killed while it acts on the world.
    pub inside: u64,
    /// A write fails and leaves nothing.
    pub refused: u64,
    /// A write fails and may have happened.
    pub unsure: u64,
    /// The store becomes unreachable for a while, and the last write may have happened.
    pub outage: u64,
    /// A write takes seconds.
    pub stall: u64,
    /// A result arrives twice.
    pub twice: u64,
    /// A response is lost.
    pub lost: u64,
    /// A command is killed.
    pub command: u64,
    /// The longest time between two faults of `kinds`; zero without faults.
    pub every: Duration,
    /// Faults that happen on their own.
    pub kinds: Vec<SimFault>,
    /// The longest time for a write.
    pub sync: Duration,
    /// The time for a message between processes.
    pub word: Duration,
    pub processes: usize,
}

/// A fault that happens on its own, not on the occasion of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimFault {
    Engine,
    Keeper,
    Command,
    All,
    Power,
    Clock,
    Leave,
    LeaveAtOnce,
    Pause,
    Cancel,
    TopUp,
    StartProcess,
    Freeze,
    Breaker,
}

/// By frequency.
const FAULTS: [SimFault; 21] = [
    SimFault::Engine,
    SimFault::Engine,
    SimFault::Engine,
    SimFault::Engine,
    SimFault::Engine,
    SimFault::Keeper,
    SimFault::Keeper,
    SimFault::Command,
    SimFault::Command,
    SimFault::All,
    SimFault::All,
    SimFault::Power,
    SimFault::Clock,
    SimFault::Leave,
    SimFault::LeaveAtOnce,
    SimFault::Pause,
    SimFault::Cancel,
    SimFault::TopUp,
    SimFault::StartProcess,
    SimFault::Freeze,
    SimFault::Breaker,
];

impl FaultPlan {
    /// No fault and no delay.
    pub fn none() -> Self {
        Self { processes: 1, ..Self::default() }
    }

    pub fn drawn(random: &mut SeededRandom) -> Self {
        let mut often = |most: u64| {
            if random.chance(1, 2) { random.between(0, most) } else { 0 }
        };
        let mut fault_plan = Self {
            inside: often(4000),
            refused: often(1500),
            unsure: often(1500),
            stall: often(3000),
            twice: often(20_000),
            lost: often(20_000),
            command: often(8000),
            ..Self::default()
        };
        fault_plan.every = Duration::from_millis(random.between(20, 20_000));
        fault_plan.sync = Duration::from_millis(random.between(0, 40));
        fault_plan.word = Duration::from_micros(random.between(1, 900));
        fault_plan.processes = usize::try_from(random.between(1, 3)).unwrap_or(1);
        let mut kinds: Vec<SimFault> = FAULTS.to_vec();
        // A random subset: some faults hide others.
        kinds.retain(|_| random.chance(2, 3));
        fault_plan.kinds = kinds;
        if random.chance(1, 2) {
            fault_plan.outage = random.between(0, 3000);
        }
        fault_plan
    }

    /// All fault plans with one kind of fault less.
    pub fn smaller(&self) -> Vec<Self> {
        let mut found = Vec::new();
        let mut with = |change: &dyn Fn(&mut Self)| {
            let mut less = self.clone();
            change(&mut less);
            if less != *self {
                found.push(less);
            }
        };
        with(&|it| it.kinds.clear());
        with(&|it| it.inside = 0);
        with(&|it| it.refused = 0);
        with(&|it| it.unsure = 0);
        with(&|it| it.outage = 0);
        with(&|it| it.stall = 0);
        with(&|it| it.twice = 0);
        with(&|it| it.lost = 0);
        with(&|it| it.command = 0);
        with(&|it| it.sync = Duration::ZERO);
        with(&|it| it.processes = 1);
        for place in 0..self.kinds.len() {
            let kind = self.kinds.get(place).copied();
            with(&|it| it.kinds.retain(|it| Some(*it) != kind));
        }
        found
    }
}
