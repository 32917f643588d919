//! The state shared by the threads of a keeper.
//!
//! One lock covers the running commands, another one the log. Both are locked only briefly, never while a
//! process is created or a file is copied.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::ffi::OsString;
use std::io;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::serve::thread;
use super::{CommandSpec, KeeperLedger, KeeperRefusal, KeeperReply, KeeperRun, RunState, RunStep, worker};
use crate::{CommandEnd, EndedBy, OutputSegments, OutputSlots, ProcessMark, Spool, SpoolLock, locked};

/// An output so short, in bytes, that the reaper may copy it.
const LITTLE: u64 = 64 << 10;

#[derive(Debug)]
pub(crate) struct KeeperShared {
    /// For threads that are started later.
    pub(crate) own: Weak<Self>,
    /// Found out when a second one is needed: the number of cores depends on many files.
    pub(crate) most_workers: OnceLock<usize>,
    pub(crate) spool: Spool,
    pub(crate) name: String,
    pub(crate) pid: i32,
    pub(crate) ledger: Mutex<KeeperLedger>,
    pub(crate) slots: OutputSlots,
    pub(crate) segments: OutputSegments,
    /// Read-locked while a process is created and entered; a write lock waits for all of these.
    pub(crate) spawning: RwLock<()>,
    pub(crate) state: Mutex<KeeperState>,
    pub(crate) work: Condvar,
    pub(crate) alarm: Condvar,
    pub(crate) children: Condvar,
    pub(crate) engine_left: Condvar,
    pub(crate) _lock: SpoolLock,
}

/// The running commands, and whether an engine is connected.
#[derive(Debug, Default)]
pub(crate) struct KeeperState {
    pub(crate) runs: HashMap<u64, KeeperRun>,
    pub(crate) by_pid: HashMap<i32, u64>,
    /// Children of no running command: left by a successful one, or not attributed.
    pub(crate) strays: HashSet<i32>,
    /// There have ever been strays; then an orphan without a mark may belong to one of them.
    pub(crate) had_strays: bool,
    pub(crate) queue: VecDeque<u64>,
    /// Commands that begin when fewer than so many run, in order.
    pub(crate) reserved: VecDeque<(CommandSpec, u32)>,
    /// The number of worker threads, and how many of them are idle.
    pub(crate) workers: usize,
    pub(crate) idle: usize,
    /// The timer thread runs.
    pub(crate) has_timer: bool,
    pub(crate) alarms: BTreeSet<(Instant, u64)>,
    pub(crate) made: u64,
    /// Of all commands of the engine.
    pub(crate) env: Arc<Vec<(OsString, OsString)>>,
    pub(crate) engine: bool,
    /// Until when the keeper waits for the first engine.
    pub(crate) patience: Option<Instant>,
}

impl KeeperState {
    pub(crate) fn remove(&mut self, id: u64) {
        if let Some(entered) = self.runs.remove(&id).and_then(|run| run.entered) {
            self.alarms.remove(&(entered, id));
        }
    }
}

impl KeeperShared {
    pub(crate) fn mark(&self, id: u64) -> ProcessMark {
        ProcessMark { keeper: self.name.clone(), id: Some(id) }
    }

    pub(crate) fn start(&self, mut spec: CommandSpec) {
        let id = spec.id;
        if self.is_known(id) {
            return self.refuse(Some(id), KeeperRefusal::Known);
        }
        let mut state = locked(&self.state);
        spec.inherited = Arc::clone(&state.env);
        state.runs.insert(id, KeeperRun::queued(spec));
        self.schedule(&mut state, id);
    }

    pub(crate) fn reserve(&self, mut spec: CommandSpec, slots: u32) {
        if self.is_known(spec.id) {
            return self.refuse(Some(spec.id), KeeperRefusal::Known);
        }
        let mut state = locked(&self.state);
        spec.inherited = Arc::clone(&state.env);
        state.reserved.push_back((spec, slots));
        self.begin_reserved(&mut state);
    }

    /// Begins reserved commands while there is a slot for them.
    pub(crate) fn begin_reserved(&self, state: &mut KeeperState) {
        let has_slot = |state: &KeeperState| {
            let running = u32::try_from(state.runs.len()).unwrap_or(u32::MAX);
            state.reserved.front().is_some_and(|(_, slots)| running < *slots)
        };
        while has_slot(state)
            && let Some((spec, _)) = state.reserved.pop_front()
        {
            let id = spec.id;
            state.runs.insert(id, KeeperRun::queued(spec));
            self.schedule(state, id);
        }
    }

    /// Whether the next slots that become free have reserved commands.
    pub(crate) fn slots_stay_busy(&self) -> bool {
        let state = locked(&self.state);
        let reserved = u32::try_from(state.reserved.len()).unwrap_or(u32::MAX);
        // An engine reserves sixteen at most.
        state.reserved.front().is_some_and(|(_, slots)| reserved.saturating_mul(2) >= (*slots).min(16))
    }

    /// What is reserved and has not begun never begins.
    pub(crate) fn withdraw(&self) {
        let withdrawn = std::mem::take(&mut locked(&self.state).reserved);
        for (spec, _) in withdrawn {
            self.refuse(Some(spec.id), KeeperRefusal::Cancelled);
        }
    }

    fn is_known(&self, id: u64) -> bool {
        let state = locked(&self.state);
        let is_running = state.runs.contains_key(&id);
        let is_reserved = state.reserved.iter().any(|(spec, _)| spec.id == id);
        drop(state);
        // In this order: a command that ends is in the ledger before it leaves `runs`.
        is_running || is_reserved || locked(&self.ledger).knows(id)
    }

    /// Ends a command and all processes it started; one that has not begun never begins.
    pub(crate) fn cancel(&self, id: u64, signal: Signal) {
        let mut state = locked(&self.state);
        let is_other = |(spec, _): &(CommandSpec, u32)| spec.id != id;
        let reserved = state.reserved.len();
        state.reserved.retain(is_other);
        if state.reserved.len() < reserved {
            drop(state);
            return self.refuse(Some(id), KeeperRefusal::Cancelled);
        }
        let Some(run) = state.runs.get_mut(&id) else {
            return;
        };
        if matches!(run.phase, RunState::Queued(_)) {
            state.remove(id);
            self.begin_reserved(&mut state);
            drop(state);
            return self.refuse(Some(id), KeeperRefusal::Cancelled);
        }
        let now = Instant::now();
        if run.end.is_none() && (run.end_with(signal, EndedBy::Cancelled, now) || run.hurry(signal, now)) {
            self.set_alarm(&mut state, id);
            self.schedule(&mut state, id);
        }
    }

    pub(crate) fn cancel_all(&self, signal: i32) {
        let signal = Signal::from_named_raw(signal).unwrap_or(Signal::TERM);
        self.withdraw();
        let ids: Vec<u64> = locked(&self.state).runs.keys().copied().collect();
        for id in ids {
            self.cancel(id, signal);
        }
    }

    pub(crate) fn refuse(&self, id: Option<u64>, why: KeeperRefusal) {
        locked(&self.ledger).report(KeeperReply::Refused { id, why });
    }

    pub(crate) fn schedule(&self, state: &mut KeeperState, id: u64) {
        let Some(run) = state.runs.get_mut(&id) else {
            return;
        };
        // A thread that handles it already asks for the next step before it is done.
        if !run.busy {
            run.busy = true;
            state.queue.push_back(id);
            self.work.notify_one();
            if state.queue.len() > state.idle && state.workers < self.most_workers() {
                // Without a new thread the existing ones do the work.
                drop(self.add_worker(state));
            }
        }
    }

    fn most_workers(&self) -> usize {
        *self.most_workers.get_or_init(|| {
            let cores = std::thread::available_parallelism().map_or(2, usize::from);
            cores.saturating_mul(2).clamp(4, 16)
        })
    }

    /// Starts another worker thread. Only when needed: most keepers have few commands at a time, and starting
    /// a thread takes as long as running a small command.
    pub(crate) fn add_worker(&self, state: &mut KeeperState) -> io::Result<()> {
        if let Some(shared) = self.own.upgrade() {
            thread("commands", move || worker::work(&shared))?;
            state.workers = state.workers.saturating_add(1);
        }
        Ok(())
    }

    /// Starts the timer thread. Aborts if that fails: a keeper without it would let commands run for ever,
    /// while a dead one is recovered.
    pub(crate) fn start_timer(&self, state: &mut KeeperState) {
        if !state.has_timer
            && let Some(shared) = self.own.upgrade()
        {
            state.has_timer = true;
            if thread("clock", move || run_timer(&shared)).is_err() {
                std::process::abort();
            }
        }
    }

    /// The next step of a busy command. Without one the command is no longer busy.
    pub(crate) fn next_step(&self, id: u64) -> Option<RunStep> {
        let mut state = locked(&self.state);
        let run = state.runs.get_mut(&id)?;
        let step = run.next_step();
        run.busy = step.is_some();
        step
    }

    /// Replaces the entered alarm of a command by the one it has set.
    pub(crate) fn set_alarm(&self, state: &mut KeeperState, id: u64) {
        let Some(run) = state.runs.get_mut(&id) else {
            return;
        };
        let (old, at) = (run.entered, run.alarm);
        run.entered = at;
        if let Some(old) = old {
            state.alarms.remove(&(old, id));
        }
        if let Some(at) = at {
            state.alarms.insert((at, id));
            self.start_timer(state);
            if state.alarms.first() == Some(&(at, id)) {
                self.alarm.notify_one();
            }
        }
    }

    /// A child of the keeper has ended. Returns a command that apparently consisted of this process alone,
    /// and wrote little; the caller may handle it at once.
    pub(crate) fn child_ended(&self, pid: i32, end: CommandEnd, reparented: bool) -> Option<u64> {
        let mut state = locked(&self.state);
        if let Some(id) = state.by_pid.remove(&pid) {
            let run = state.runs.get_mut(&id)?;
            (run.end, run.reparented, run.settle) = (Some(end), reparented, true);
            // A redaction may still have to write, and the reaper must not wait for it.
            let slot = run.slot.as_ref().filter(|_| run.redaction.is_none());
            let is_small = slot.is_some_and(|slot| slot.written().is_ok_and(|much| much <= LITTLE));
            if is_small && !reparented && !run.busy {
                run.busy = true;
                return Some(id);
            }
            self.schedule(&mut state, id);
            return None;
        }
        state.strays.remove(&pid);
        // It may have been the last process of a command whose leader has ended.
        let mut waiting = Vec::new();
        for (id, run) in &mut state.runs {
            if run.end.is_some() {
                run.settle = true;
                waiting.push(*id);
            }
        }
        for id in waiting {
            self.schedule(&mut state, id);
        }
        None
    }

    /// Admits an engine once the last one has left. False if that takes too long.
    pub(crate) fn admit_engine(&self, wait: Duration) -> bool {
        let (mut state, _) = self
            .engine_left
            .wait_timeout_while(locked(&self.state), wait, |state| state.engine)
            .unwrap_or_else(PoisonError::into_inner);
        let free = !state.engine;
        if free {
            state.engine = true;
            state.patience = None;
        }
        free
    }

    pub(crate) fn engine_gone(&self) {
        locked(&self.ledger).disconnect();
        let mut state = locked(&self.state);
        // They have not begun, so the next engine finds no trace of them.
        state.reserved.clear();
        state.env = Arc::default();
        state.engine = false;
        self.engine_left.notify_all();
        self.exit_if_idle(&state);
    }

    /// The first engine has connected, or never will.
    pub(crate) fn end_patience(&self) {
        let mut state = locked(&self.state);
        state.patience = None;
        self.exit_if_idle(&state);
    }

    /// Exits if there is neither an engine nor a command; everything is in the log. An engine that connects
    /// at this moment gets an error, and starts the next keeper.
    pub(crate) fn exit_if_idle(&self, state: &KeeperState) {
        if !state.engine && state.runs.is_empty() && state.patience.is_none() {
            // If this fails, the next keeper removes the socket.
            drop(self.spool.remove_socket());
            std::process::exit(0);
        }
    }
}

pub(crate) fn run_timer(shared: &KeeperShared) {
    let mut state = locked(&shared.state);
    loop {
        let now = Instant::now();
        while let Some(&(at, id)) = state.alarms.first()
            && at <= now
        {
            state.alarms.pop_first();
            alarm_due(shared, &mut state, id, now);
        }
        if state.patience.is_some_and(|until| until <= now) {
            state.patience = None;
            shared.exit_if_idle(&state);
        }
        let next = [state.alarms.first().map(|(at, _)| *at), state.patience];
        state = match next.into_iter().flatten().min() {
            Some(at) => {
                let rest = at.saturating_duration_since(Instant::now());
                shared.alarm.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0
            }
            None => shared.alarm.wait(state).unwrap_or_else(PoisonError::into_inner),
        };
    }
}

fn alarm_due(shared: &KeeperShared, state: &mut KeeperState, id: u64, now: Instant) {
    let Some(run) = state.runs.get_mut(&id) else {
        return;
    };
    let due = run.wake(now);
    shared.set_alarm(state, id);
    if due {
        shared.schedule(state, id);
    }
}
