//! How a command ended.
//!
//! Facts only: whether an end is a failure, and of which class, is for the policy to say.

use std::time::SystemTime;

use minicbor::{Decode, Encode};

use super::SpooledOutput;
use crate::codec;

/// The end of a command, as the system tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum End {
    /// It exited with this status.
    #[n(0)]
    Code(#[n(0)] i32),
    #[n(1)]
    Signal(#[n(0)] i32),
    /// It could not be started.
    #[n(2)]
    NotStarted(#[n(0)] NotStarted),
}

impl End {
    /// Whether it exited with 0.
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Code(0))
    }

    /// The status a shell would show: the code; 128 and the signal; 127 for a program that is not
    /// there, 126 for one that cannot be started.
    pub const fn shell_status(self) -> i32 {
        const ENOENT: i32 = 2;
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128_i32.saturating_add(signal),
            Self::NotStarted(NotStarted { errno: ENOENT, .. }) => 127,
            Self::NotStarted(_) => 126,
        }
    }
}

/// Why a command could not be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct NotStarted {
    /// The error number of the system.
    #[n(0)]
    pub errno: i32,
    #[n(1)]
    pub refusing: Refusing,
}

/// What stood in the way of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum Refusing {
    /// The program: not there, not executable, or no process could be made.
    #[n(0)]
    Program,
    #[n(1)]
    WorkingDirectory,
    /// The file for its input.
    #[n(2)]
    Stdin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum EndedBy {
    #[n(0)]
    Itself,
    /// The keeper, after its timeout.
    #[n(1)]
    Timeout,
    /// The keeper, because it wrote more than its output limit. Said also of a command that had
    /// ended before the keeper looked, so that it does not depend on who was faster.
    #[n(2)]
    OutputLimit,
    /// The keeper, because it was told to.
    #[n(3)]
    Cancelled,
}

/// A command that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Exited {
    #[n(0)]
    pub id: u64,
    #[n(1)]
    pub end: End,
    #[n(2)]
    pub why: EndedBy,
    /// When it was started.
    #[n(3)]
    #[cbor(with = "codec")]
    pub began: SystemTime,
    /// When its end was noted.
    #[n(4)]
    #[cbor(with = "codec")]
    pub ended: SystemTime,
    /// What it wrote to its output.
    #[n(5)]
    pub stdout: SpooledOutput,
    /// What it wrote to its error output.
    #[n(6)]
    pub stderr: SpooledOutput,
    /// Processes it left running. Only a command that succeeds may leave any.
    #[n(7)]
    pub left: u32,
}

/// A command of which nobody knows how it ended: its keeper has died, or the machine has.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Vanished {
    #[n(0)]
    pub id: u64,
    /// When its start was noted; its process may or may not have been made.
    #[n(1)]
    #[cbor(with = "codec")]
    pub began: SystemTime,
    /// What it had written to its output.
    #[n(2)]
    pub stdout: SpooledOutput,
    /// What it had written to its error output.
    #[n(3)]
    pub stderr: SpooledOutput,
    /// Processes of it that were found alive and ended.
    #[n(4)]
    pub ended: u32,
    /// Processes of it that were found and could not be ended, such as one of another user.
    #[n(5)]
    pub survived: u32,
}
