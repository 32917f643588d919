//! The world outside the processes of a simulation: its time, its chance, and what happens in it.
//!
//! One thread, one queue. Whatever a process does reaches the world through [`SimWorld::touch`], where
//! it may be killed: a process that is dead changes nothing any more, whatever its code still does.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use undaunted_policy::Timestamp;
use undaunted_runner::ExecutorMessage;
use undaunted_runner::drive::Notifier;
use undaunted_store::{AggregateId, Append, Claim, OnAppended, OnFindings, Question, Version};

use super::case::{JobCase, ScriptedAttempt};
use super::keepers::KeeperProcess;
use super::oracle::Oracle;
use super::plan::FaultPlan;
use super::results::SentResult;
use crate::random::SeededRandom;

/// When every simulation begins, by its wall clock.
const BEGIN: u64 = 1_700_000_000_000;

/// The world, for all who live in it.
pub(super) type SharedWorld = Arc<Mutex<SimWorld>>;

/// Looks at the world; one thread does, so nobody waits.
pub(super) fn lock(shared: &SharedWorld) -> MutexGuard<'_, SimWorld> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Something that happens at its time.
pub(super) enum SimEvent {
    /// A process polls its event loop, if it has not been scheduled anew since.
    Poll {
        process: usize,
        turn: u64,
    },
    /// What a process has submitted is on the disk.
    Written {
        process: usize,
    },
    /// A query of a process reaches the store.
    Queried {
        process: usize,
        question: Question,
        done: OnFindings,
    },
    /// Work that a process does beside its event loop.
    BackgroundWork {
        process: usize,
        work: Box<dyn FnOnce() + Send>,
    },
    /// A response reaches the process that sent the request.
    HttpAnswered {
        process: usize,
        number: u64,
    },
    /// The result of an accepted attempt is sent.
    ResultSent(Box<SentResult>),
    KeeperReceives {
        job: String,
        generation: u64,
        message: KeeperMessage,
    },
    /// A command ends, unless it was ended before.
    CommandEnds {
        job: String,
        start: u64,
        generation: u64,
    },
    /// An engine notices that its keeper has died.
    KeeperGone {
        process: usize,
        job: String,
    },
    StartProcess,
    /// A process claims the jobs that no process owns.
    ClaimJobs {
        process: usize,
    },
    Unfreeze {
        process: usize,
    },
    InjectFault,
    /// No fault is injected from now on.
    EndFaults,
}

/// What a keeper is told.
pub(super) enum KeeperMessage {
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
pub(super) enum PendingWrite {
    /// Records.
    Append(Vec<Append>, OnAppended),
    /// A claim is given up.
    Release(Claim),
}

/// A process: whether it lives, and what is under way for it.
#[derive(Default)]
pub(super) struct ProcessState {
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
    pub(super) waiting: VecDeque<PendingWrite>,
    /// What is being written.
    pub(super) writing: Vec<PendingWrite>,
    /// What it has claimed.
    pub(super) claims: BTreeSet<AggregateId>,
    /// Whoever waits for an answer, and the answer.
    pub(super) asking: BTreeMap<u64, (Notifier, ExecutorMessage)>,
    /// Which turn is the one to come.
    pub(super) turn: u64,
    /// How long it rests if nothing happens.
    pub(super) poll_interval: Duration,
    /// Whether there is news for it.
    pub(super) is_woken: bool,
}

impl ProcessState {
    /// Whether something is being written.
    pub(super) fn writes(&self) -> bool {
        !self.waiting.is_empty() || !self.writing.is_empty()
    }
}

/// The world.
pub(super) struct SimWorld {
    /// For how long the machine has been running.
    pub(super) now: Duration,
    /// By how much the wall clock was set since, in milliseconds.
    pub(super) clock_offset: i64,
    queue: BTreeMap<(Duration, bool, u64), SimEvent>,
    count: u64,
    pub(super) random: SeededRandom,
    pub(super) fault_plan: FaultPlan,
    pub(super) processes: Vec<ProcessState>,
    pub(super) keepers: BTreeMap<String, KeeperProcess>,
    /// When somebody was last seen running a job.
    pub(super) seen: BTreeMap<String, Timestamp>,
    /// What jobs do, by their names.
    pub(super) cases: BTreeMap<String, JobCase>,
    pub(super) oracle: Oracle,
    /// How many requests were sent.
    pub(super) requests: u64,
    /// How often a process, a keeper, a command or the machine died.
    pub(super) crashes: u64,
    /// Whether nothing ever goes wrong.
    pub(super) is_calm: bool,
    /// Whether nothing goes wrong any more.
    pub(super) faults_are_over: bool,
    /// What happened, if somebody wants to read it.
    pub(super) history: Option<Vec<String>>,
}

/// Whether a process may act on the world.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Liveness {
    Alive,
    Dead,
}

impl SimWorld {
    pub(super) fn new(random: SeededRandom, fault_plan: FaultPlan, cases: BTreeMap<String, JobCase>) -> Self {
        Self {
            now: Duration::from_secs(1000),
            clock_offset: 0,
            queue: BTreeMap::new(),
            count: 0,
            random,
            fault_plan,
            processes: Vec::new(),
            keepers: BTreeMap::new(),
            seen: BTreeMap::new(),
            cases,
            oracle: Oracle::default(),
            requests: 0,
            crashes: 0,
            is_calm: false,
            faults_are_over: false,
            history: None,
        }
    }

    /// What the wall clock says.
    pub(super) fn wall(&self) -> Timestamp {
        let up = i64::try_from(self.now.as_millis()).unwrap_or(i64::MAX);
        let since = u64::try_from(up.saturating_add(self.clock_offset)).unwrap_or_default();
        let poll_interval = Duration::from_nanos(u64::from(self.now.subsec_nanos() % 1_000_000));
        Timestamp::from_millis(BEGIN.saturating_add(since)).after(poll_interval)
    }

    /// Something will happen so much later.
    pub(super) fn after(&mut self, wait: Duration, what: SimEvent) {
        self.count = self.count.saturating_add(1);
        let at = self.now.saturating_add(wait);
        // Whoever looks at the clock sees what time it is before anything ends at that very time.
        let is_step = matches!(what, SimEvent::Poll { .. });
        self.queue.insert((at, !is_step, self.count), what);
    }

    /// What happens next.
    pub(super) fn next(&mut self) -> Option<SimEvent> {
        let ((at, ..), what) = self.queue.pop_first()?;
        self.now = self.now.max(at);
        Some(what)
    }

    /// A process is about to do something to the world. It may be its last deed, or not be done any
    /// more.
    pub(super) fn touch(&mut self, process: usize) -> Liveness {
        let fault_plan = self.fault_plan.inside;
        let killed = fault_plan > 0 && self.random.chance(fault_plan, 100_000);
        let before = killed && self.random.chance(1, 2);
        let Some(state) = self.processes.get_mut(process) else {
            return Liveness::Dead;
        };
        if state.is_dead {
            return Liveness::Dead;
        }
        if killed {
            state.is_dead = true;
            self.crashes = self.crashes.saturating_add(1);
            let place = if before { "before" } else { "after" };
            self.log(|| format!("engine {process} is killed right {place} something it does"));
        }
        if before { Liveness::Dead } else { Liveness::Alive }
    }

    /// Whether a process lives.
    pub(super) fn is_alive(&self, process: usize) -> bool {
        self.processes.get(process).is_some_and(|state| !state.is_dead)
    }

    /// There is news for a process.
    pub(super) fn wake(&mut self, process: usize) {
        if let Some(state) = self.processes.get_mut(process) {
            state.is_woken = true;
        }
    }

    /// What an attempt of a job does.
    pub(super) fn act(&self, job: &str, label: &str, item: &str, attempt: u32) -> ScriptedAttempt {
        // The flow of an item is called after the flow it is part of.
        let case = self.cases.get(job);
        let case = case.or_else(|| self.cases.get(job.split(':').next().unwrap_or_default()));
        case.map_or_else(ScriptedAttempt::nothing, |case| case.act(label, item, attempt))
    }

    /// Notes something for whoever reads the history.
    pub(super) fn log(&mut self, what: impl FnOnce() -> String) {
        if let Some(history) = &mut self.history {
            let at = self.now.saturating_sub(Duration::from_secs(1000));
            history.push(format!("{:>12.6} s  {}", at.as_secs_f64(), what()));
        }
    }
}
