//! The world outside the processes of a simulation: its time, its chance, and what happens in it.
//!
//! One thread, one queue. Whatever a process does reaches the world through [`Outside::touch`], where
//! it may be killed: a process that is dead changes nothing any more, whatever its code still does.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use undaunted_policy::Timestamp;
use undaunted_runner::ExecutorMessage;
use undaunted_runner::drive::Notifier;
use undaunted_store::{AggregateId, Append, Claim, OnAppended, OnFindings, Question, Version};

use super::case::{Act, Case};
use super::harm::Harm;
use super::keepers::KeeperProcess;
use super::reports::Report;
use super::witness::Witness;
use crate::die::Die;

/// When every simulation begins, by its wall clock.
const BEGIN: u64 = 1_700_000_000_000;

/// The world, for all who live in it.
pub(super) type Shared = Arc<Mutex<Outside>>;

/// Looks at the world; one thread does, so nobody waits.
pub(super) fn look(shared: &Shared) -> MutexGuard<'_, Outside> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Something that happens at its time.
pub(super) enum Happening {
    /// A process comes round.
    Step { process: usize, turn: u64 },
    /// What a process has written is on the disk.
    Written { process: usize },
    /// What a process has asked reaches the store.
    Asked { process: usize, question: Question, done: OnFindings },
    /// A process does something beside its loop.
    Aside { process: usize, work: Box<dyn FnOnce() + Send> },
    /// An answer reaches the process that sent the request.
    Answer { process: usize, number: u64 },
    /// The result of an attempt that was taken on is sent.
    Report(Box<Report>),
    /// A keeper hears something.
    Keeper { job: String, life: u64, told: Told },
    /// A command ends, or should.
    Command { job: String, start: u64, life: u64 },
    /// An engine notices that its keeper has gone.
    Gone { process: usize, job: String },
    /// Another process begins.
    Begin,
    /// A process looks for jobs that nobody runs.
    Adopt { process: usize },
    /// A process that stood still goes on.
    Wake { process: usize },
    /// Something goes wrong.
    Harm,
    /// Nothing goes wrong from now on.
    Heal,
}

/// What a keeper is told.
pub(super) enum Told {
    /// To run a command.
    Run(Box<undaunted_runner::keeper::CommandSpec>),
    /// To end one.
    Cancel(u64),
    /// To end all.
    CancelAll,
    /// To forget one.
    Forget(u64),
    /// That what it knew is on record.
    Trust,
}

/// Something a process has handed over to be written.
pub(super) enum Write {
    /// Records.
    Append(Vec<Append>, OnAppended),
    /// A claim is given up.
    Release(Claim),
}

/// A process: whether it lives, and what is under way for it.
#[derive(Default)]
pub(super) struct Life {
    /// Whether it was killed.
    pub(super) is_dead: bool,
    /// Whether it cannot use its store any more.
    pub(super) is_broken: bool,
    /// Until when it cannot reach its store at least; then the next question gets through.
    pub(super) outage: Option<Duration>,
    /// How many questions it waits for the answers of.
    pub(super) questions: u32,
    /// Appends whose answer was lost, by their first journal and the version they continue.
    pub(super) lost: BTreeSet<(AggregateId, Version)>,
    /// What waits to be written.
    pub(super) waiting: VecDeque<Write>,
    /// What is being written.
    pub(super) writing: Vec<Write>,
    /// What it has claimed.
    pub(super) claims: BTreeSet<AggregateId>,
    /// Whoever waits for an answer, and the answer.
    pub(super) asking: BTreeMap<u64, (Notifier, ExecutorMessage)>,
    /// Which turn is the one to come.
    pub(super) turn: u64,
    /// How long it rests if nothing happens.
    pub(super) rest: Duration,
    /// Whether there is news for it.
    pub(super) has_news: bool,
}

impl Life {
    /// Whether something is being written.
    pub(super) fn writes(&self) -> bool {
        !self.waiting.is_empty() || !self.writing.is_empty()
    }
}

/// The world.
pub(super) struct Outside {
    /// For how long the machine has been running.
    pub(super) now: Duration,
    /// By how much the wall clock was set since, in milliseconds.
    pub(super) skew: i64,
    queue: BTreeMap<(Duration, bool, u64), Happening>,
    count: u64,
    pub(super) die: Die,
    pub(super) harm: Harm,
    pub(super) lives: Vec<Life>,
    pub(super) keepers: BTreeMap<String, KeeperProcess>,
    /// When somebody was last seen running a job.
    pub(super) seen: BTreeMap<String, Timestamp>,
    /// What jobs do, by their names.
    pub(super) cases: BTreeMap<String, Case>,
    pub(super) witness: Witness,
    /// How many requests were sent.
    pub(super) requests: u64,
    /// How often a process, a keeper, a command or the machine died.
    pub(super) crashes: u64,
    /// Whether nothing ever goes wrong.
    pub(super) is_calm: bool,
    /// Whether nothing goes wrong any more.
    pub(super) is_healed: bool,
    /// What happened, if somebody wants to read it.
    pub(super) history: Option<Vec<String>>,
}

/// Whether a process can do what it is about to do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Touch {
    /// It can.
    Does,
    /// It does not any more.
    Dead,
}

impl Outside {
    pub(super) fn new(die: Die, harm: Harm, cases: BTreeMap<String, Case>) -> Self {
        Self {
            now: Duration::from_secs(1000),
            skew: 0,
            queue: BTreeMap::new(),
            count: 0,
            die,
            harm,
            lives: Vec::new(),
            keepers: BTreeMap::new(),
            seen: BTreeMap::new(),
            cases,
            witness: Witness::default(),
            requests: 0,
            crashes: 0,
            is_calm: false,
            is_healed: false,
            history: None,
        }
    }

    /// What the wall clock says.
    pub(super) fn wall(&self) -> Timestamp {
        let up = i64::try_from(self.now.as_millis()).unwrap_or(i64::MAX);
        let since = u64::try_from(up.saturating_add(self.skew)).unwrap_or_default();
        let rest = Duration::from_nanos(u64::from(self.now.subsec_nanos() % 1_000_000));
        Timestamp::from_millis(BEGIN.saturating_add(since)).after(rest)
    }

    /// Something will happen so much later.
    pub(super) fn after(&mut self, wait: Duration, what: Happening) {
        self.count = self.count.saturating_add(1);
        let at = self.now.saturating_add(wait);
        // Whoever looks at the clock sees what time it is before anything ends at that very time.
        let is_step = matches!(what, Happening::Step { .. });
        self.queue.insert((at, !is_step, self.count), what);
    }

    /// What happens next.
    pub(super) fn next(&mut self) -> Option<Happening> {
        let ((at, ..), what) = self.queue.pop_first()?;
        self.now = self.now.max(at);
        Some(what)
    }

    /// A process is about to do something to the world. It may be its last deed, or not be done any
    /// more.
    pub(super) fn touch(&mut self, process: usize) -> Touch {
        let harm = self.harm.inside;
        let killed = harm > 0 && self.die.falls(harm, 100_000);
        let before = killed && self.die.falls(1, 2);
        let Some(life) = self.lives.get_mut(process) else {
            return Touch::Dead;
        };
        if life.is_dead {
            return Touch::Dead;
        }
        if killed {
            life.is_dead = true;
            self.crashes = self.crashes.saturating_add(1);
            let place = if before { "before" } else { "after" };
            self.tell(|| format!("engine {process} is killed right {place} something it does"));
        }
        if before { Touch::Dead } else { Touch::Does }
    }

    /// Whether a process lives.
    pub(super) fn lives(&self, process: usize) -> bool {
        self.lives.get(process).is_some_and(|life| !life.is_dead)
    }

    /// There is news for a process.
    pub(super) fn wake(&mut self, process: usize) {
        if let Some(life) = self.lives.get_mut(process) {
            life.has_news = true;
        }
    }

    /// What an attempt of a job does.
    pub(super) fn act(&self, job: &str, label: &str, item: &str, attempt: u32) -> Act {
        // The flow of an item is called after the flow it is part of.
        let case = self.cases.get(job);
        let case = case.or_else(|| self.cases.get(job.split(':').next().unwrap_or_default()));
        case.map_or_else(Act::nothing, |case| case.act(label, item, attempt))
    }

    /// Notes something for whoever reads the history.
    pub(super) fn tell(&mut self, what: impl FnOnce() -> String) {
        if let Some(history) = &mut self.history {
            let at = self.now.saturating_sub(Duration::from_secs(1000));
            history.push(format!("{:>12.6} s  {}", at.as_secs_f64(), what()));
        }
    }
}
