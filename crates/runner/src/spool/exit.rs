//! How commands ended, and the fates of those that the last engine started. Facts only: the policy decides
//! whether an end is a failure, and of which class.

use std::collections::BTreeMap;
use std::time::SystemTime;

use minicbor::{Decode, Encode};

use super::SpooledOutput;
use crate::codec;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum CommandEnd {
    #[n(0)]
    Code(#[n(0)] i32),
    #[n(1)]
    Signal(#[n(0)] i32),
    #[n(2)]
    NotStarted(#[n(0)] NotStartedCommand),
}

impl CommandEnd {
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Code(0))
    }

    /// The status a shell would show: the code; 128 plus the signal; 127 for a missing program, 126 for
    /// one that cannot be started.
    pub const fn shell_status(self) -> i32 {
        const ENOENT: i32 = 2;
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128_i32.saturating_add(signal),
            Self::NotStarted(NotStartedCommand { errno: ENOENT, .. }) => 127,
            Self::NotStarted(_) => 126,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct NotStartedCommand {
    #[n(0)]
    pub errno: i32,
    #[n(1)]
    pub refusing: StartRefusal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum StartRefusal {
    /// Missing, not executable, or no process could be created.
    #[n(0)]
    Program,
    #[n(1)]
    WorkingDirectory,
    #[n(2)]
    Stdin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum EndedBy {
    #[n(0)]
    Itself,
    #[n(1)]
    Timeout,
    /// By the keeper. Also used for a command that exceeded the limit and ended before the keeper checked, so
    /// that the result does not depend on a race.
    #[n(2)]
    OutputLimit,
    #[n(3)]
    Cancelled,
}

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CommandExit {
    #[n(0)]
    pub id: u64,
    #[n(1)]
    pub end: CommandEnd,
    #[n(2)]
    pub why: EndedBy,
    #[n(3)]
    #[cbor(with = "codec")]
    pub began: SystemTime,
    #[n(4)]
    #[cbor(with = "codec")]
    pub ended: SystemTime,
    #[n(5)]
    pub stdout: SpooledOutput,
    #[n(6)]
    pub stderr: SpooledOutput,
    /// Processes it left running. Only a command that succeeds may leave any.
    #[n(7)]
    pub left: u32,
}

/// A command whose end is not known, because its keeper or the machine has died.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct VanishedCommand {
    #[n(0)]
    pub id: u64,
    /// When its start was noted; its process may not have been created.
    #[n(1)]
    #[cbor(with = "codec")]
    pub began: SystemTime,
    #[n(2)]
    pub stdout: SpooledOutput,
    #[n(3)]
    pub stderr: SpooledOutput,
    /// Processes found alive and ended.
    #[n(4)]
    pub ended: u32,
    /// Processes found that could not be ended, such as those of another user.
    #[n(5)]
    pub survived: u32,
}

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

/// The fates of the attempts that were started by the last engine and not forgotten. An attempt that is not in the
/// spool never began, unless the spool is uncertain.
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
