//! What the next engine learns about the attempts of the last one.
//!
//! Every attempt that was started and not forgotten has one fate. An attempt the spool has never
//! heard of never began, as long as the spool can vouch for that.

use std::collections::BTreeMap;
use std::time::SystemTime;

use minicbor::{Decode, Encode};

use super::{Exited, Vanished};
use crate::codec;

/// What became of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// No process was ever made for it; it may begin under the same number.
    NeverBegan,
    /// It runs, or is about to; its end will be told.
    Running(RunningCommand),
    Exited(Exited),
    /// Nobody knows how it ended; nothing of it runs any more. Without facts when even its start is
    /// uncertain.
    Vanished(Option<Vanished>),
}

/// A command that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RunningCommand {
    #[n(0)]
    pub id: u64,
    /// Its process; none while it is being made.
    #[n(1)]
    pub pid: Option<i32>,
    /// Whose files it writes to, until it ends.
    #[n(2)]
    pub slot: Option<u32>,
    /// When its start was noted.
    #[n(3)]
    #[cbor(with = "codec")]
    pub began: Option<SystemTime>,
}

/// A log that could not be read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Damage {
    /// The first byte that is no record.
    #[n(0)]
    pub offset: u64,
    /// How many bytes were left unread.
    #[n(1)]
    pub unread: u64,
}

/// The fates of all attempts the spool knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// What became of each.
    pub fates: BTreeMap<u64, Fate>,
    /// Whether something may have begun that stands nowhere: the machine was started again, or the
    /// log was damaged.
    pub uncertain: bool,
    /// Where the log was damaged, if the keeper was started just now and found it so.
    pub damage: Option<Damage>,
}

impl Recovered {
    /// What became of an attempt that was to be started.
    pub fn fate(&self, id: u64) -> Fate {
        match self.fates.get(&id) {
            Some(fate) => fate.clone(),
            None if self.uncertain => Fate::Vanished(None),
            None => Fate::NeverBegan,
        }
    }

    /// The attempts the spool knows, in order.
    pub fn known(&self) -> impl Iterator<Item = (u64, &Fate)> {
        self.fates.iter().map(|(id, fate)| (*id, fate))
    }
}
