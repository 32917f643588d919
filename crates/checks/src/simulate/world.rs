//! The world of a simulation: time, randomness, events, and the states of all processes.
//!
//! One thread, one queue. Every action of a process passes through [`SimWorld::touch`], where the process may
//! be killed; a dead process changes nothing any more, whatever its code still does.

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

/// The wall clock at the beginning.
const BEGIN: u64 = 1_700_000_000_000;

pub(super) type SharedWorld = Arc<Mutex<SimWorld>>;

/// There is one thread, so the lock is free.
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

/// A message to a keeper.
pub(super) enum KeeperMessage {
    Run(Box<undaunted_runner::keeper::CommandSpec>),
    /// Run it as soon as fewer than so many commands run.
    Reserve(Box<undaunted_runner::keeper::CommandSpec>, u32),
    Withdraw,
    Cancel(u64),
    CancelAll,
    Forget(u64),
    /// What the keeper reported is recorded.
    Trust,
}

pub(super) enum PendingWrite {
    Append(Vec<Append>, OnAppended),
    Release(Claim),
}

/// The state of a process in the world.
#[derive(Default)]
pub(super) struct ProcessState {
    pub(super) is_dead: bool,
    /// Whether it cannot use its store any more.
    pub(super) is_broken: bool,
    /// The store is unreachable at least until then; the next query ends the outage.
    pub(super) outage: Option<Duration>,
    /// Unanswered queries.
    pub(super) questions: u32,
    /// Appends without an answer, by their first journal and the version they continue.
    pub(super) lost: BTreeSet<(AggregateId, Version)>,
    /// Submitted and not being written yet.
    pub(super) waiting: VecDeque<PendingWrite>,
    pub(super) writing: Vec<PendingWrite>,
    pub(super) claims: BTreeSet<AggregateId>,
    /// Requests that wait for a response, and the response.
    pub(super) asking: BTreeMap<u64, (Notifier, ExecutorMessage)>,
    /// The number of the scheduled poll; earlier ones do not count.
    pub(super) turn: u64,
    /// The time between polls when nothing happens.
    pub(super) poll_interval: Duration,
    /// Whether it has messages to handle.
    pub(super) is_woken: bool,
}

impl ProcessState {
    pub(super) fn writes(&self) -> bool {
        !self.waiting.is_empty() || !self.writing.is_empty()
    }
}

pub(super) struct SimWorld {
    /// The uptime of the machine.
    pub(super) now: Duration,
    /// How far the wall clock was set, in milliseconds.
    pub(super) clock_offset: i64,
    queue: BTreeMap<(Duration, bool, u64), SimEvent>,
    count: u64,
    pub(super) random: SeededRandom,
    pub(super) fault_plan: FaultPlan,
    pub(super) processes: Vec<ProcessState>,
    pub(super) keepers: BTreeMap<String, KeeperProcess>,
    /// When each job was last seen alive.
    pub(super) last_seen: BTreeMap<String, Timestamp>,
    /// By job.
    pub(super) cases: BTreeMap<String, JobCase>,
    pub(super) oracle: Oracle,
    pub(super) requests: u64,
    /// How often a process, a keeper, a command or the machine died.
    pub(super) crashes: u64,
    /// Whether there are no faults at all.
    pub(super) is_calm: bool,
    pub(super) faults_are_over: bool,
    /// What happened, if that is wanted.
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
            last_seen: BTreeMap::new(),
            cases,
            oracle: Oracle::default(),
            requests: 0,
            crashes: 0,
            is_calm: false,
            faults_are_over: false,
            history: None,
        }
    }

    pub(super) fn wall(&self) -> Timestamp {
        let up = i64::try_from(self.now.as_millis()).unwrap_or(i64::MAX);
        let since = u64::try_from(up.saturating_add(self.clock_offset)).unwrap_or_default();
        let poll_interval = Duration::from_nanos(u64::from(self.now.subsec_nanos() % 1_000_000));
        Timestamp::from_millis(BEGIN.saturating_add(since)).after(poll_interval)
    }

    /// Schedules an event.
    pub(super) fn after(&mut self, wait: Duration, what: SimEvent) {
        self.count += 1;
        let at = self.now.saturating_add(wait);
        // Polls come first, so that a process sees the time before anything else happens at that time.
        let is_step = matches!(what, SimEvent::Poll { .. });
        self.queue.insert((at, !is_step, self.count), what);
    }

    pub(super) fn next(&mut self) -> Option<SimEvent> {
        let ((at, ..), what) = self.queue.pop_first()?;
        self.now = self.now.max(at);
        Some(what)
    }

    /// A process is about to act on the world, and may die before or after that.
    pub(super) fn touch(&mut self, process: usize) -> Liveness {
        let fault_plan = self.fault_plan.killed_in_action;
        let killed = fault_plan > 0 && self.random.chance(fault_plan, 100_000);
        let before = killed && self.random.chance(1, 2);
        let state = &mut self.processes[process];
        if state.is_dead {
            return Liveness::Dead;
        }
        if killed {
            state.is_dead = true;
            self.crashes += 1;
            let place = if before { "before" } else { "after" };
            self.log(|| format!("engine {process} is killed right {place} something it does"));
        }
        if before { Liveness::Dead } else { Liveness::Alive }
    }

    pub(super) fn is_alive(&self, process: usize) -> bool {
        self.processes.get(process).is_some_and(|state| !state.is_dead)
    }

    pub(super) fn wake(&mut self, process: usize) {
        self.processes[process].is_woken = true;
    }

    /// What an attempt of a job does.
    pub(super) fn act(&self, job: &str, label: &str, item: &str, attempt: u32) -> ScriptedAttempt {
        // The flow of an item is named after its parent flow.
        let case = self.cases.get(job);
        let case = case.or_else(|| self.cases.get(job.split(':').next().unwrap_or_default()));
        case.map_or_else(ScriptedAttempt::nothing, |case| case.act(label, item, attempt))
    }

    /// Adds a line to the history.
    pub(super) fn log(&mut self, what: impl FnOnce() -> String) {
        if let Some(history) = &mut self.history {
            let at = self.now.saturating_sub(Duration::from_secs(1000));
            history.push(format!("{:>12.6} s  {}", at.as_secs_f64(), what()));
        }
    }
}
