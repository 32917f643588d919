//! Programs: shell commands and agents, run by the keeper.
//!
//! Secrets are passed in the environment; the keeper redacts them from the output. It reports how a process ended;
//! [`AttemptEnds`](crate::machine::AttemptEnds) makes the end of the attempt of it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

use rustix::process::Signal;
use undaunted_engine::id::StartId;
use undaunted_engine::input::AttemptEnd;
use undaunted_engine::task::{KeptOutput, Task, TaskWork};

use super::{AttemptFate, Executor, StartedAttempt};
use crate::machine::{CommandHost, ReachedKeeper, most};
use crate::{CommandSpec, ExpectedEnd, JobContext};

pub(crate) struct Programs {
    keeper: Option<Box<dyn CommandHost>>,
    /// The connection to the keeper is lost; the event loop has to reconnect.
    pub(crate) is_disconnected: bool,
    /// Starts that a keeper may know of, perhaps from an earlier engine.
    pub(crate) known_to_keeper: BTreeSet<StartId>,
    /// The fates of attempts that were on record when the loop reconnected, until it has handled them.
    fates: BTreeMap<StartId, AttemptFate>,
    /// The recovered fates are not on record yet; nothing new starts until they are.
    pub(crate) is_settling: bool,
    /// What running programs get first when all of them are cancelled.
    pub(crate) stop_signal: i32,
}

impl Default for Programs {
    fn default() -> Self {
        Self {
            keeper: None,
            is_disconnected: false,
            known_to_keeper: BTreeSet::new(),
            fates: BTreeMap::new(),
            is_settling: false,
            stop_signal: Signal::TERM.as_raw(),
        }
    }
}

impl Programs {
    /// Uses a keeper that was reached. Returns the starts it knows of whose ends are on record, or are being
    /// written.
    pub(crate) fn reconnect(&mut self, reached: ReachedKeeper) -> BTreeSet<StartId> {
        self.keeper = Some(reached.keeper);
        self.is_disconnected = false;
        self.fates = reached.fates;
        self.is_settling = true;
        reached.others
    }

    pub(crate) fn disconnect(&mut self) {
        self.keeper = None;
        self.is_disconnected = true;
    }

    /// The recovered fates are on record.
    pub(crate) fn trust(&mut self) {
        self.is_settling = false;
        if let Some(keeper) = &self.keeper {
            keeper.trust();
        }
    }

    /// The end of an attempt is on record. After a lost connection this is sent again on reconnecting.
    pub(crate) fn forget(&self, start: StartId) {
        if let Some(keeper) = &self.keeper {
            keeper.forget(start);
        }
    }

    pub(crate) const fn is_connected(&self) -> bool {
        self.keeper.is_some()
    }

    /// Lets the keeper begin an attempt as soon as fewer than `slots` commands run.
    pub(crate) fn reserve(&mut self, start: StartId, task: &Task, slots: u32, context: &JobContext<'_>) {
        let Some(spec) = spec(task, start, context) else {
            return context.cannot_begin(start);
        };
        self.known_to_keeper.insert(start);
        if let Some(keeper) = &self.keeper {
            keeper.reserve(spec, ExpectedEnd::of(task), slots);
        }
    }

    /// The keeper reports every reserved start that it has not begun as not begun.
    pub(crate) fn withdraw(&self) {
        if let Some(keeper) = &self.keeper {
            keeper.withdraw();
        }
    }

    pub(crate) fn flush(&self) {
        if let Some(keeper) = &self.keeper {
            keeper.flush();
        }
    }

    pub(crate) fn cancel_all(&self) {
        if let Some(keeper) = &self.keeper {
            keeper.cancel_all(self.stop_signal);
        }
    }

    /// Ends all programs without a grace.
    pub(crate) fn kill_all(&self) {
        if let Some(keeper) = &self.keeper {
            keeper.cancel_all(Signal::KILL.as_raw());
        }
    }
}

impl Executor for Programs {
    fn begin(&mut self, start: StartId, task: Task, context: &JobContext<'_>) {
        let Some(spec) = spec(&task, start, context) else {
            return context.cannot_begin(start);
        };
        self.known_to_keeper.insert(start);
        // Without a connection the start is not sent; after reconnecting, the keeper will not know it.
        if let Some(keeper) = &self.keeper {
            keeper.run(spec, ExpectedEnd::of(&task));
        }
    }

    fn cancel(&mut self, start: StartId, _: &JobContext<'_>) -> Option<AttemptEnd> {
        if let Some(keeper) = &self.keeper {
            keeper.cancel(start);
        }
        None
    }

    fn fate_after_crash(&mut self, attempt: &StartedAttempt<'_>) -> AttemptFate {
        self.fates.remove(&attempt.start).unwrap_or(AttemptFate::Wait(None))
    }

    fn ended(&mut self, start: StartId) {
        self.known_to_keeper.remove(&start);
    }
}

fn spec(task: &Task, start: StartId, context: &JobContext<'_>) -> Option<CommandSpec> {
    let TaskWork::Run { argv } = &task.work else {
        return None;
    };
    let env = context.secrets.values().iter().chain(&task.env);
    Some(CommandSpec {
        env: env.map(|(name, value)| (OsString::from(name), OsString::from(value))).collect(),
        working_dir: PathBuf::from(&task.working_dir),
        timeout: task.timeout,
        output_limit: task.output_limit,
        stdin: task.stdin.as_ref().map(PathBuf::from),
        capture: match (task.keeps, task.wants_output) {
            (KeptOutput::All, _) => u64::MAX,
            (keeps, true) => most(keeps),
            (KeptOutput::Value | KeptOutput::Items, false) => 0,
        },
        grace: context.services.grace,
        secrets: context.secrets.values().iter().map(|(_, value)| value.clone()).collect(),
        ..CommandSpec::new(start.0, argv)
    })
}
