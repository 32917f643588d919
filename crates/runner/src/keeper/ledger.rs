//! The keeper's log, and the engine that gets its news.
//!
//! One lock for both: nothing is reported before it is noted, and an engine that connects gets everything
//! once, as known or as news. Lock order: a thread that holds the ledger may take the state's lock, never the
//! other way round.

use std::io;
use std::sync::mpsc::Sender;
use std::time::{Duration, SystemTime};

use super::message::Reply;
use crate::spool::{Damage, Entry, Exited, Log, Record, RunningCommand};

#[derive(Debug)]
pub(crate) struct Ledger {
    log: Log,
    damage: Option<Damage>,
    engine: Option<Sender<Reply>>,
}

impl Ledger {
    pub(crate) fn new(log: Log, damage: Option<Damage>) -> Self {
        Self { log, damage, engine: None }
    }

    pub(crate) fn knows(&self, id: u64) -> bool {
        self.log.entries().get(id).is_some()
    }

    /// Notes that a process is about to be created; only then may it be.
    pub(crate) fn spawning(&mut self, id: u64, at: SystemTime, slot: u32, grace: Duration) -> io::Result<()> {
        self.log.announce(&Record::Spawning { id, at, slot, grace })
    }

    pub(crate) fn spawned(&mut self, id: u64, pid: i32) {
        self.log.note(&Record::Spawned { id, pid });
        if let Some(Entry::Begun(begun)) = self.log.entries().get(id) {
            let (slot, began) = (Some(begun.slot), Some(begun.at));
            self.tell(Reply::Running(RunningCommand { id, pid: Some(pid), slot, began }));
        }
    }

    pub(crate) fn exited(&mut self, exited: Exited) {
        self.log.note(&Record::Exited(exited.clone()));
        self.tell(Reply::Exited(exited));
    }

    pub(crate) fn forget(&mut self, id: u64) {
        if let Some(Entry::Exited(_) | Entry::Vanished(_)) = self.log.entries().get(id) {
            self.log.note(&Record::Forgotten { id });
        }
    }

    /// From now on, an attempt that is not on record never began.
    pub(crate) fn trust(&mut self) {
        self.damage = None;
        // If it cannot be written, the next engine assumes more doubt than there is.
        drop(self.log.trust());
    }

    /// All that is known, for an engine that connects; from now on it gets all news. `queued` are the attempts
    /// that are about to begin.
    pub(crate) fn connect(&mut self, engine: Sender<Reply>, pid: i32, queued: Vec<u64>) -> Vec<Reply> {
        self.engine = Some(engine);
        let mut replies =
            vec![Reply::Welcome { pid, uncertain: self.log.is_uncertain(), damage: self.damage }];
        replies.extend(self.log.entries().iter().map(known));
        let queued = queued.into_iter().filter(|id| !self.knows(*id));
        replies.extend(
            queued.map(|id| Reply::Running(RunningCommand { id, pid: None, slot: None, began: None })),
        );
        replies.push(Reply::Ready);
        replies
    }

    pub(crate) fn disconnect(&mut self) {
        self.engine = None;
    }

    pub(crate) fn tell(&self, reply: Reply) {
        if let Some(engine) = &self.engine {
            // An engine that has just gone loses nothing: all of it is on record.
            drop(engine.send(reply));
        }
    }
}

fn known((id, entry): (u64, &Entry)) -> Reply {
    match entry {
        Entry::Begun(begun) => Reply::Running(RunningCommand {
            id,
            pid: begun.pid,
            slot: Some(begun.slot),
            began: Some(begun.at),
        }),
        Entry::Exited(exited) => Reply::Exited(exited.clone()),
        Entry::Vanished(vanished) => Reply::Vanished(vanished.clone()),
    }
}
