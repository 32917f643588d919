//! What the threads of a keeper share.
//!
//! One lock for the commands that run, one for what is on record; both are held for moments only,
//! never while a process is made or a file is copied.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::io;
use std::sync::{Condvar, Mutex, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use super::ledger::Ledger;
use super::message::{Refusal, Reply};
use super::run::{Phase, Run, Step};
use super::serve::thread;
use super::spec::Spec;
use super::{attend, clock};
use crate::lock::locked;
use crate::process::Mark;
use crate::spool::{End, EndedBy, Lock, Segments, Slots, Spool};

/// An output so short that keeping it holds nobody up.
const LITTLE: u64 = 64 << 10;

/// The keeper, as all its threads see it.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Itself, for threads that are started when they are needed.
    pub(crate) own: Weak<Self>,
    /// How many threads attend to commands at most.
    pub(crate) most_workers: usize,
    pub(crate) spool: Spool,
    /// The name in the marks of its commands.
    pub(crate) name: String,
    /// Its process and session.
    pub(crate) pid: i32,
    pub(crate) ledger: Mutex<Ledger>,
    pub(crate) slots: Slots,
    pub(crate) segments: Segments,
    /// Read while a process is made and entered; who then writes has seen every process entered.
    pub(crate) spawning: RwLock<()>,
    pub(crate) state: Mutex<State>,
    pub(crate) work: Condvar,
    pub(crate) alarm: Condvar,
    pub(crate) children: Condvar,
    pub(crate) engine_left: Condvar,
    /// Held as long as the keeper lives.
    pub(crate) _lock: Lock,
}

/// The commands that run, and who is there.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) runs: HashMap<u64, Run>,
    pub(crate) by_pid: HashMap<i32, u64>,
    /// Children that belong to no command that runs: what a success left, and what nobody can
    /// attribute.
    pub(crate) strays: HashSet<i32>,
    /// Whether there ever were any; then an orphan without a mark may be one of theirs.
    pub(crate) had_strays: bool,
    pub(crate) queue: VecDeque<u64>,
    /// Threads that attend to commands, and how many of them have nothing to do.
    pub(crate) workers: usize,
    pub(crate) idle: usize,
    /// Whether somebody watches the time.
    pub(crate) is_watched: bool,
    pub(crate) alarms: BTreeSet<(Instant, u64)>,
    /// How many processes were made.
    pub(crate) made: u64,
    pub(crate) engine: bool,
    /// Until when the first engine has time to come.
    pub(crate) patience: Option<Instant>,
}

impl State {
    pub(crate) fn remove(&mut self, id: u64) {
        if let Some(entered) = self.runs.remove(&id).and_then(|run| run.entered) {
            self.alarms.remove(&(entered, id));
        }
    }
}

impl Shared {
    pub(crate) fn mark(&self, id: u64) -> Mark {
        Mark {
            keeper: self.name.clone(),
            id: Some(id),
        }
    }

    /// Takes a command in, to be started at once.
    pub(crate) fn start(&self, spec: Spec) {
        let id = spec.id;
        // One after the other, in this order: what leaves the first is in the second.
        let is_running = locked(&self.state).runs.contains_key(&id);
        let is_known = locked(&self.ledger).knows(id);
        if is_running || is_known {
            return self.refuse(Some(id), Refusal::Known);
        }
        let mut state = locked(&self.state);
        state.runs.insert(id, Run::queued(spec));
        self.schedule(&mut state, id);
    }

    /// Ends a command with all it started; one that has not begun never does.
    pub(crate) fn cancel(&self, id: u64) {
        let mut state = locked(&self.state);
        let Some(run) = state.runs.get_mut(&id) else {
            return;
        };
        if matches!(run.phase, Phase::Queued(_)) {
            state.remove(id);
            drop(state);
            return self.refuse(Some(id), Refusal::Cancelled);
        }
        if run.end.is_none() && run.end(EndedBy::Cancelled, Instant::now()) {
            self.set_alarm(&mut state, id);
            self.schedule(&mut state, id);
        }
    }

    pub(crate) fn cancel_all(&self) {
        let ids: Vec<u64> = locked(&self.state).runs.keys().copied().collect();
        for id in ids {
            self.cancel(id);
        }
    }

    pub(crate) fn refuse(&self, id: Option<u64>, why: Refusal) {
        locked(&self.ledger).tell(Reply::Refused { id, why });
    }

    /// Has somebody attend to a command.
    pub(crate) fn schedule(&self, state: &mut State, id: u64) {
        let Some(run) = state.runs.get_mut(&id) else {
            return;
        };
        // Who attends to it already asks for the next step before turning away.
        if !run.busy {
            run.busy = true;
            state.queue.push_back(id);
            self.work.notify_one();
            if state.queue.len() > state.idle && state.workers < self.most_workers {
                // Without it the others do its work.
                drop(self.hire(state));
            }
        }
    }

    /// Starts one more thread that attends to commands. Most keepers have few commands at a time, and a
    /// thread takes as long to start as a small command to run.
    pub(crate) fn hire(&self, state: &mut State) -> io::Result<()> {
        if let Some(shared) = self.own.upgrade() {
            thread("commands", move || attend::work(&shared))?;
            state.workers = state.workers.saturating_add(1);
        }
        Ok(())
    }

    /// Has somebody watch the time from now on. A keeper that cannot would let commands run for ever; a
    /// dead one is recovered from.
    pub(crate) fn watch(&self, state: &mut State) {
        if !state.is_watched
            && let Some(shared) = self.own.upgrade()
        {
            state.is_watched = true;
            if thread("clock", move || clock::watch(&shared)).is_err() {
                std::process::abort();
            }
        }
    }

    /// The next step of a command somebody attends to; none when there is nothing to do, and then
    /// nobody attends to it any more.
    pub(crate) fn next_step(&self, id: u64) -> Option<Step> {
        let mut state = locked(&self.state);
        let run = state.runs.get_mut(&id)?;
        let step = run.next_step();
        run.busy = step.is_some();
        step
    }

    /// Enters the alarm a command has set, in the place of the one before.
    pub(crate) fn set_alarm(&self, state: &mut State, id: u64) {
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
            self.watch(state);
            if state.alarms.first() == Some(&(at, id)) {
                self.alarm.notify_one();
            }
        }
    }

    /// A process of the keeper has ended. Returns a command that its own process alone made up, as
    /// far as can be told, and wrote little: whoever noticed may attend to it on the spot.
    pub(crate) fn child_ended(&self, pid: i32, end: End, adopted: bool) -> Option<u64> {
        let mut state = locked(&self.state);
        if let Some(id) = state.by_pid.remove(&pid) {
            let run = state.runs.get_mut(&id)?;
            (run.end, run.adopted, run.settle) = (Some(end), adopted, true);
            let slot = run.slot.as_ref();
            let is_small = slot.is_some_and(|slot| slot.written().is_ok_and(|much| much <= LITTLE));
            if is_small && !adopted && !run.busy {
                run.busy = true;
                return Some(id);
            }
            self.schedule(&mut state, id);
            return None;
        }
        state.strays.remove(&pid);
        // Somebody's last process, perhaps: whoever waits for a tree to be gone looks again.
        let waiting: Vec<u64> = state
            .runs
            .iter()
            .filter(|(_, run)| run.end.is_some())
            .map(|(id, _)| *id)
            .collect();
        for id in waiting {
            if let Some(run) = state.runs.get_mut(&id) {
                run.settle = true;
            }
            self.schedule(&mut state, id);
        }
        None
    }

    /// Lets an engine in, once the last one has left.
    pub(crate) fn let_in(&self, wait: Duration) -> bool {
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

    pub(crate) fn let_out(&self) {
        locked(&self.ledger).disconnect();
        let mut state = locked(&self.state);
        state.engine = false;
        self.engine_left.notify_all();
        self.leave_if_idle(&state);
    }

    /// The engine that was to come first was there, or will never be.
    pub(crate) fn expect_nobody(&self) {
        let mut state = locked(&self.state);
        state.patience = None;
        self.leave_if_idle(&state);
    }

    /// A keeper without engine and commands has nothing to do: the log alone says what there is to
    /// know. Who connects at this moment finds the door closed, and starts the next keeper.
    pub(crate) fn leave_if_idle(&self, state: &State) {
        if !state.engine && state.runs.is_empty() && state.patience.is_none() {
            // A socket nobody listens to is removed by the next keeper.
            drop(self.spool.remove_socket());
            std::process::exit(0);
        }
    }
}
