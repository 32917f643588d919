//! The plan drawn from a seed: jobs, and the faults to inject. `faults.rs` injects them.

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
        let cases = (0..jobs).map(|_| JobCase::drawn(&mut random));
        // Few drawn maps are so plain that starts are reserved.
        let is_plain = matches!(seed % 16, 1 | 2 | 3 | 7 | 14);
        let cases = cases.map(|case| if is_plain { case.plain() } else { case }).collect();
        let mut fault_plan = FaultPlan::drawn(&mut random);
        if is_plain {
            fault_plan.stop_often();
        }
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

    /// Every plan with one thing removed, to shrink a failing seed.
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

/// Rates of faults per 100 000 actions, and the delays of the simulated machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// A process is killed while it carries out an effect.
    pub killed_in_action: u64,
    /// A write fails and leaves nothing.
    pub refused: u64,
    /// A write fails, and may be on disk.
    pub write_unknown: u64,
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
    /// The mean time between two faults of `kinds`; each wait is drawn from 0 to twice this.
    pub mean_interval: Duration,
    /// Faults that a timer injects.
    pub kinds: Vec<SimFault>,
    pub max_write_time: Duration,
    /// The time a message takes between processes.
    pub message_delay: Duration,
    pub processes: usize,
}

/// A fault injected by a timer. The rates in [`FaultPlan`] make actions fail instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimFault {
    KillEngine,
    KillKeeper,
    KillCommand,
    KillEngineAndKeepers,
    PowerFailure,
    SetClock,
    Interrupt,
    InterruptTwice,
    Pause,
    Cancel,
    TopUp,
    StartProcess,
    Freeze,
    OperateBreaker,
}

/// Each fault is repeated by how often it is drawn.
const FAULTS: [SimFault; 21] = [
    SimFault::KillEngine,
    SimFault::KillEngine,
    SimFault::KillEngine,
    SimFault::KillEngine,
    SimFault::KillEngine,
    SimFault::KillKeeper,
    SimFault::KillKeeper,
    SimFault::KillCommand,
    SimFault::KillCommand,
    SimFault::KillEngineAndKeepers,
    SimFault::KillEngineAndKeepers,
    SimFault::PowerFailure,
    SimFault::SetClock,
    SimFault::Interrupt,
    SimFault::InterruptTwice,
    SimFault::Pause,
    SimFault::Cancel,
    SimFault::TopUp,
    SimFault::StartProcess,
    SimFault::Freeze,
    SimFault::OperateBreaker,
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
            killed_in_action: often(4000),
            refused: often(1500),
            write_unknown: often(1500),
            stall: often(3000),
            twice: often(20_000),
            lost: often(20_000),
            command: often(8000),
            ..Self::default()
        };
        fault_plan.mean_interval = Duration::from_millis(random.between(20, 20_000));
        fault_plan.max_write_time = Duration::from_millis(random.between(0, 40));
        fault_plan.message_delay = Duration::from_micros(random.between(1, 900));
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

    /// More of what reserved starts have to survive, and slow writes, during which they begin.
    fn stop_often(&mut self) {
        self.kinds.extend([SimFault::Pause, SimFault::KillEngine].repeat(4));
        self.mean_interval = self.mean_interval.min(Duration::from_millis(1501));
        self.max_write_time = Duration::from_millis(40);
    }

    /// Every fault plan with one kind of fault removed.
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
        with(&|it| it.killed_in_action = 0);
        with(&|it| it.refused = 0);
        with(&|it| it.write_unknown = 0);
        with(&|it| it.outage = 0);
        with(&|it| it.stall = 0);
        with(&|it| it.twice = 0);
        with(&|it| it.lost = 0);
        with(&|it| it.command = 0);
        with(&|it| it.max_write_time = Duration::ZERO);
        with(&|it| it.processes = 1);
        for place in 0..self.kinds.len() {
            let kind = self.kinds.get(place).copied();
            with(&|it| it.kinds.retain(|it| Some(*it) != kind));
        }
        found
    }
}
