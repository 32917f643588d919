//! What a seed stands for: jobs, and what goes wrong while they run.

use std::time::Duration;

use super::case::JobCase;
use crate::random::SeededRandom;

/// What is simulated.
#[derive(Clone, Debug)]
pub struct SimPlan {
    /// Where chance comes from.
    pub seed: u64,
    /// The jobs.
    pub cases: Vec<JobCase>,
    /// What goes wrong.
    pub fault_plan: FaultPlan,
}

impl SimPlan {
    /// What a seed stands for.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut random = SeededRandom::new(seed);
        let jobs = if random.chance(1, 3) { random.between(2, 3) } else { 1 };
        let cases = (0..jobs).map(|_| JobCase::drawn(&mut random)).collect();
        let fault_plan = FaultPlan::drawn(&mut random);
        Self { seed, cases, fault_plan }
    }

    /// The first of its jobs, and nothing goes wrong.
    #[must_use]
    pub fn calm(&self) -> Self {
        Self {
            seed: self.seed,
            cases: self.cases.first().cloned().into_iter().collect(),
            fault_plan: FaultPlan::none(),
        }
    }

    /// The same with one thing less, each in its turn.
    #[must_use]
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

/// How often what goes wrong: of 100 000 times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// A process is killed while it does something.
    pub inside: u64,
    /// A write fails, and nothing of it is there.
    pub refused: u64,
    /// A write fails, and nobody knows what of it is there.
    pub unsure: u64,
    /// The store cannot be reached any more for a while, and it is not known what of a write is there.
    pub outage: u64,
    /// A write takes seconds.
    pub stall: u64,
    /// A report comes twice.
    pub twice: u64,
    /// A report does not come.
    pub lost: u64,
    /// A command is killed by somebody.
    pub command: u64,
    /// The most time between two things that happen by themselves; zero if nothing does.
    pub every: Duration,
    /// What happens then.
    pub kinds: Vec<Fault>,
    /// The longest that records take to be on the disk.
    pub sync: Duration,
    /// How long a word takes from one process to another.
    pub word: Duration,
    /// How many processes there are.
    pub processes: usize,
}

/// Something that happens by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An engine is killed.
    Engine,
    /// A keeper is killed.
    Keeper,
    /// A command is killed.
    Command,
    /// An engine, and all keepers and commands are killed.
    All,
    /// The power fails.
    Power,
    /// The wall clock is set.
    Clock,
    /// An engine is asked to leave.
    Leave,
    /// An engine is asked to leave at once.
    LeaveAtOnce,
    /// A job is paused, or goes on.
    Pause,
    /// A job is cancelled.
    Cancel,
    /// The pool of a job is made larger.
    TopUp,
    /// Another engine begins.
    StartProcess,
    /// An engine stands still for a while.
    Freeze,
    /// Somebody opens or closes a breaker by hand.
    Breaker,
}

/// All of them, those that happen more often more often.
const BLOWS: [Fault; 21] = [
    Fault::Engine,
    Fault::Engine,
    Fault::Engine,
    Fault::Engine,
    Fault::Engine,
    Fault::Keeper,
    Fault::Keeper,
    Fault::Command,
    Fault::Command,
    Fault::All,
    Fault::All,
    Fault::Power,
    Fault::Clock,
    Fault::Leave,
    Fault::LeaveAtOnce,
    Fault::Pause,
    Fault::Cancel,
    Fault::TopUp,
    Fault::StartProcess,
    Fault::Freeze,
    Fault::Breaker,
];

impl FaultPlan {
    /// Nothing goes wrong, and nothing takes time.
    #[must_use]
    pub fn none() -> Self {
        Self { processes: 1, ..Self::default() }
    }

    /// Some of it.
    #[must_use]
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
        let mut kinds: Vec<Fault> = BLOWS.to_vec();
        // Which of them happen is drawn too: some go unnoticed behind others.
        kinds.retain(|_| random.chance(2, 3));
        fault_plan.kinds = kinds;
        if random.chance(1, 2) {
            fault_plan.outage = random.between(0, 3000);
        }
        fault_plan
    }

    /// The same with one kind of harm less, each in its turn.
    #[must_use]
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
