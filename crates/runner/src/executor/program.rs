//! Programs: shell commands and agents, run by the keeper.
//!
//! A secret goes in by the environment. How an attempt ended is put together behind [`Keeping`].

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

use undaunted_engine::input::AttemptEnd;
use undaunted_engine::task::{Keeps, Task, TaskWork};

use super::{AttemptFate, Executor, Started};
use crate::drive::JobContext;
use crate::keeper::Spec;
use crate::machine::{Expected, Keeping, ReachedKeeper, most};

/// The programs of a job, and the keeper that runs them.
#[derive(Default)]
pub(crate) struct Programs {
    keeper: Option<Box<dyn Keeping>>,
    /// Starts that a keeper may know of.
    told: BTreeSet<u64>,
    /// What became of those that were on record when it was reached, until that is drawn from here.
    fates: BTreeMap<u64, AttemptFate>,
    /// Whether what a keeper knew of before is not on record yet: nothing new starts until it is.
    is_settling: bool,
}

impl Programs {
    /// Starts that an engine before this one may have told a keeper of.
    pub(crate) fn were_told(&mut self, told: BTreeSet<u64>) {
        self.told = told;
    }

    /// Starts that a keeper may know of.
    pub(crate) const fn told(&self) -> &BTreeSet<u64> {
        &self.told
    }

    /// A keeper is reached. Returns the starts it knows of whose ends are on record, or are being written.
    pub(crate) fn attach(&mut self, reached: ReachedKeeper) -> BTreeSet<u64> {
        self.keeper = Some(reached.keeper);
        self.fates = reached.fates;
        self.is_settling = true;
        reached.others
    }

    /// The keeper has gone.
    pub(crate) fn detach(&mut self) {
        self.keeper = None;
    }

    /// What the keeper knew of before is on record.
    pub(crate) fn trust(&mut self) {
        self.is_settling = false;
        if let Some(keeper) = &self.keeper {
            keeper.trust();
        }
    }

    /// Whether nothing may start, because what the keeper knew of before is not on record yet.
    pub(crate) const fn is_settling(&self) -> bool {
        self.is_settling
    }

    /// The end of an attempt is on record. A keeper that has gone forgets by itself, or is told again.
    pub(crate) fn forget(&self, start: u64) {
        if let Some(keeper) = &self.keeper {
            keeper.forget(start);
        }
    }

    pub(crate) fn cancel_all(&self) {
        if let Some(keeper) = &self.keeper {
            keeper.cancel_all();
        }
    }
}

impl Executor for Programs {
    fn begin(&mut self, start: u64, task: Task, context: &JobContext<'_>) {
        let Some(spec) = spec(&task, start, context) else {
            return context.cannot_begin(start);
        };
        self.told.insert(start);
        // One that has gone is reached again, and then it has never heard of this start.
        if let Some(keeper) = &self.keeper {
            keeper.run(spec, Expected::of(&task));
        }
    }

    fn cancel(&mut self, start: u64, _: &JobContext<'_>) -> Option<AttemptEnd> {
        if let Some(keeper) = &self.keeper {
            keeper.cancel(start);
        }
        None
    }

    fn fate_after_crash(&mut self, attempt: &Started<'_>) -> AttemptFate {
        let fate = self.fates.remove(&attempt.start);
        fate.unwrap_or(AttemptFate::Wait)
    }

    fn ended(&mut self, start: u64) {
        self.told.remove(&start);
    }
}

/// What the keeper is told.
fn spec(task: &Task, start: u64, context: &JobContext<'_>) -> Option<Spec> {
    let TaskWork::Run { argv } = &task.work else {
        return None;
    };
    let mut env = context.world.around.clone();
    let own = context.secrets.iter().chain(&task.env);
    for (name, value) in own {
        let (name, value) = (OsString::from(name), OsString::from(value));
        match env.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => env.push((name, value)),
        }
    }
    Some(Spec {
        env,
        working_dir: PathBuf::from(&task.working_dir),
        timeout: task.timeout,
        output_limit: task.output_limit,
        stdin: task.stdin.as_ref().map(PathBuf::from),
        capture: match (task.keeps, task.wants_output) {
            (Keeps::All, _) => u64::MAX,
            (keeps, true) => most(keeps),
            (Keeps::Value | Keeps::Items, false) => 0,
        },
        grace: context.world.grace,
        ..Spec::new(start, argv)
    })
}
