//! The fates of the attempts of the last engine, for the next one.
//!
//! Every attempt that was started and not forgotten has one fate. An attempt that is not in the spool never
//! began, unless the spool is uncertain.

use std::collections::BTreeMap;
use std::time::SystemTime;

use minicbor::{Decode, Encode};

use super::{CommandExit, VanishedCommand};
use crate::codec;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandFate {
    /// No process was ever created for it; it may begin under the same number.
    NeverBegan,
    /// It runs, or is about to; its end will be reported.
    Running(RunningCommand),
    Exited(CommandExit),
    /// Its end is not known; nothing of it runs any more. None if even its start is uncertain.
    Vanished(Option<VanishedCommand>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RunningCommand {
    #[n(0)]
    pub id: u64,
    /// None while it is being created.
    #[n(1)]
    pub pid: Option<i32>,
    /// The files it writes to, until it ends.
    #[n(2)]
    pub slot: Option<u32>,
    #[n(3)]
    #[cbor(with = "codec")]
    pub began: Option<SystemTime>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SpoolDamage {
    /// The first byte that is not part of a record.
    #[n(0)]
    pub offset: u64,
    #[n(1)]
    pub unread: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveredSpool {
    pub fates: BTreeMap<u64, CommandFate>,
    /// An attempt may have begun that is not in the log, because the machine was restarted or the log
    /// was damaged.
    pub uncertain: bool,
    /// Set if the keeper was started just now and found the log damaged.
    pub damage: Option<SpoolDamage>,
}

impl RecoveredSpool {
    pub fn fate(&self, id: u64) -> CommandFate {
        match self.fates.get(&id) {
            Some(fate) => fate.clone(),
            None if self.uncertain => CommandFate::Vanished(None),
            None => CommandFate::NeverBegan,
        }
    }

    pub fn known(&self) -> impl Iterator<Item = (u64, &CommandFate)> {
        self.fates.iter().map(|(id, fate)| (*id, fate))
    }
}
