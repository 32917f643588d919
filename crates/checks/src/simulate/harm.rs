//! What may go wrong, and how often.

use std::time::Duration;

use crate::die::Die;

/// How often what goes wrong: of 100 000 times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Harm {
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
    pub kinds: Vec<Blow>,
    /// The longest that records take to be on the disk.
    pub sync: Duration,
    /// How long a word takes from one process to another.
    pub word: Duration,
    /// How many processes there are.
    pub processes: usize,
}

/// Something that happens by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blow {
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
    Another,
    /// An engine stands still for a while.
    Stand,
    /// Somebody opens or closes a breaker by hand.
    Breaker,
}

/// All of them, those that happen more often more often.
const BLOWS: [Blow; 21] = [
    Blow::Engine,
    Blow::Engine,
    Blow::Engine,
    Blow::Engine,
    Blow::Engine,
    Blow::Keeper,
    Blow::Keeper,
    Blow::Command,
    Blow::Command,
    Blow::All,
    Blow::All,
    Blow::Power,
    Blow::Clock,
    Blow::Leave,
    Blow::LeaveAtOnce,
    Blow::Pause,
    Blow::Cancel,
    Blow::TopUp,
    Blow::Another,
    Blow::Stand,
    Blow::Breaker,
];

impl Harm {
    /// Nothing goes wrong, and nothing takes time.
    #[must_use]
    pub fn none() -> Self {
        Self { processes: 1, ..Self::default() }
    }

    /// Some of it.
    #[must_use]
    pub fn drawn(die: &mut Die) -> Self {
        let mut often = |most: u64| {
            if die.falls(1, 2) { die.between(0, most) } else { 0 }
        };
        let mut harm = Self {
            inside: often(4000),
            refused: often(1500),
            unsure: often(1500),
            stall: often(3000),
            twice: often(20_000),
            lost: often(20_000),
            command: often(8000),
            ..Self::default()
        };
        harm.every = Duration::from_millis(die.between(20, 20_000));
        harm.sync = Duration::from_millis(die.between(0, 40));
        harm.word = Duration::from_micros(die.between(1, 900));
        harm.processes = usize::try_from(die.between(1, 3)).unwrap_or(1);
        let mut kinds: Vec<Blow> = BLOWS.to_vec();
        // Which of them happen is drawn too: some go unnoticed behind others.
        kinds.retain(|_| die.falls(2, 3));
        harm.kinds = kinds;
        if die.falls(1, 2) {
            harm.outage = die.between(0, 3000);
        }
        harm
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
