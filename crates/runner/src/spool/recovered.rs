//! What the next engine learns about the attempts of the last one.
//!
//! Every attempt that was started and not forgotten has one fate. An attempt that is not in the spool never
//! began, unless the spool is uncertain.

use std::collections::BTreeMap;
use std::time::SystemTime;

use minicbor::{Decode, Encode};

use super::{Exited, Vanished};
use crate::codec;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// No process was ever created for it; it may begin under the same number.
    NeverBegan,
    /// It runs, or is about to; its end will be reported.
    Running(RunningCommand),
    Exited(Exited),
    /// Its end is not known; nothing of it runs any more. None if even its start is uncertain.
    Vanished(Option<Vanished>),
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
pub struct Damage {
    /// The first byte that is not part of a record.
    #[n(0)]
    pub offset: u64,
    #[n(1)]
    pub unread: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    pub fates: BTreeMap<u64, Fate>,
    /// An attempt may have begun that is not in the log, because the machine was restarted or the log
    /// was damaged.
    pub uncertain: bool,
    /// Set if the keeper was started just now and found the log damaged.
    pub damage: Option<Damage>,
}

impl Recovered {
    pub fn fate(&self, id: u64) -> Fate {
        match self.fates.get(&id) {
            Some(fate) => fate.clone(),
            None if self.uncertain => Fate::Vanished(None),
            None => Fate::NeverBegan,
        }
    }

    pub fn known(&self) -> impl Iterator<Item = (u64, &Fate)> {
        self.fates.iter().map(|(id, fate)| (*id, fate))
    }
}
