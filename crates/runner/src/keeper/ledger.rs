//! The keeper's log, and the engine to which its records are reported.
//!
//! One lock covers both: nothing is reported before it is recorded, and an engine that connects gets every
//! record exactly once, as a known one or as a new one. Lock order: a thread that has the ledger may take the
//! state's lock, never the other way round.

use std::io;
use std::sync::mpsc::Sender;
use std::time::{Duration, SystemTime};

use super::KeeperReply;
use crate::{CommandExit, RunningCommand, SpoolDamage, SpoolEntry, SpoolLog, SpoolRecord};

#[derive(Debug)]
pub(crate) struct KeeperLedger {
    log: SpoolLog,
    damage: Option<SpoolDamage>,
    engine: Option<Sender<KeeperReply>>,
}

impl KeeperLedger {
    pub(crate) fn new(log: SpoolLog, damage: Option<SpoolDamage>) -> Self {
        Self { log, damage, engine: None }
    }

    pub(crate) fn knows(&self, id: u64) -> bool {
        self.log.entries().get(id).is_some()
    }

    /// Records that a process is about to be created. The process must not be created before.
    pub(crate) fn spawning(&mut self, id: u64, at: SystemTime, slot: u32, grace: Duration) -> io::Result<()> {
        self.log.announce(&SpoolRecord::Spawning { id, at, slot, grace })
    }

    pub(crate) fn spawned(&mut self, id: u64, pid: i32) {
        self.log.note(&SpoolRecord::Spawned { id, pid });
        if let Some(SpoolEntry::Begun(begun)) = self.log.entries().get(id) {
            self.report(KeeperReply::Running(begun.running(id)));
        }
    }

    pub(crate) fn exited(&mut self, exited: CommandExit) {
        self.log.note(&SpoolRecord::Exited(exited.clone()));
        self.report(KeeperReply::Exited(exited));
    }

    pub(crate) fn forget(&mut self, id: u64) {
        if let Some(SpoolEntry::Exited(_) | SpoolEntry::Vanished(_)) = self.log.entries().get(id) {
            self.log.note(&SpoolRecord::Forgotten { id });
        }
    }

    /// From now on, an attempt that is not on record never began.
    pub(crate) fn trust(&mut self) {
        self.damage = None;
        // If this cannot be written, the next engine only sees more uncertainty than there is.
        drop(self.log.trust());
    }

    /// Returns everything on record for an engine that connects; from now on new records are reported to it.
    /// `queued` are the attempts that are about to begin.
    pub(crate) fn connect(
        &mut self,
        engine: Sender<KeeperReply>,
        pid: i32,
        queued: Vec<u64>,
    ) -> Vec<KeeperReply> {
        self.engine = Some(engine);
        let mut replies =
            vec![KeeperReply::Welcome { pid, uncertain: self.log.is_uncertain(), damage: self.damage }];
        replies.extend(self.log.entries().iter().map(known));
        let queued = queued.into_iter().filter(|id| !self.knows(*id));
        replies.extend(
            queued.map(|id| KeeperReply::Running(RunningCommand { id, pid: None, slot: None, began: None })),
        );
        replies.push(KeeperReply::Ready);
        replies
    }

    pub(crate) fn disconnect(&mut self) {
        self.engine = None;
    }

    pub(crate) fn report(&self, reply: KeeperReply) {
        if let Some(engine) = &self.engine {
            // An engine that has just died loses nothing: everything is on record.
            drop(engine.send(reply));
        }
    }
}

fn known((id, entry): (u64, &SpoolEntry)) -> KeeperReply {
    match entry {
        SpoolEntry::Begun(begun) => KeeperReply::Running(begun.running(id)),
        SpoolEntry::Exited(exited) => KeeperReply::Exited(exited.clone()),
        SpoolEntry::Vanished(vanished) => KeeperReply::Vanished(vanished.clone()),
    }
}
