//! How a command ended.
//!
//! Facts only: whether an end is a failure, and of which class, is for the policy to say.

use std::time::SystemTime;

use super::Kept;
use crate::bytes::{Bytes, Malformed, take_tag};

/// The end of a command, as the system tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It exited with this status.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// It could not be started.
    NotStarted(NotStarted),
}

impl End {
    /// Whether it exited with 0.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Code(0))
    }

    /// The status a shell would show: the code; 128 and the signal; 127 for a program that is not
    /// there, 126 for one that cannot be started.
    #[must_use]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotStarted {
    /// The error number of the system.
    pub errno: i32,
    /// What refused.
    pub refusing: Refusing,
}

/// What stood in the way of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusing {
    /// The program: not there, not executable, or no process could be made.
    Program,
    /// The working directory.
    WorkingDirectory,
    /// The file for its input.
    Stdin,
}

/// Who ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Nobody of ours.
    Itself,
    /// The keeper, after its timeout.
    Timeout,
    /// The keeper, because it wrote more than its output limit. Said also of a command that had
    /// ended before the keeper looked, so that it does not depend on who was faster.
    OutputLimit,
    /// The keeper, because it was told to.
    Cancelled,
}

/// A command that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exited {
    /// The attempt.
    pub id: u64,
    /// How it ended.
    pub end: End,
    /// Who ended it.
    pub why: Why,
    /// When it was started.
    pub began: SystemTime,
    /// When its end was noted.
    pub ended: SystemTime,
    /// What it wrote to its output.
    pub stdout: Kept,
    /// What it wrote to its error output.
    pub stderr: Kept,
    /// Processes it left running. Only a command that succeeds may leave any.
    pub left: u32,
}

/// A command of which nobody knows how it ended: its keeper has died, or the machine has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vanished {
    /// The attempt.
    pub id: u64,
    /// When its start was noted; its process may or may not have been made.
    pub began: SystemTime,
    /// What it had written to its output.
    pub stdout: Kept,
    /// What it had written to its error output.
    pub stderr: Kept,
    /// Processes of it that were found alive and ended.
    pub ended: u32,
    /// Processes of it that were found and could not be ended, such as one of another user.
    pub survived: u32,
}

impl Bytes for End {
    fn put(&self, to: &mut Vec<u8>) {
        match self {
            Self::Code(code) => (0_u8, *code).put(to),
            Self::Signal(signal) => (1_u8, *signal).put(to),
            Self::NotStarted(NotStarted { errno, refusing }) => {
                let refusing: u8 = match refusing {
                    Refusing::Program => 2,
                    Refusing::WorkingDirectory => 3,
                    Refusing::Stdin => 4,
                };
                (refusing, *errno).put(to);
            }
        }
    }

    fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
        let (tag, number) = <(u8, i32)>::take(from)?;
        let not_started = |refusing| {
            Self::NotStarted(NotStarted {
                errno: number,
                refusing,
            })
        };
        Ok(match tag {
            0 => Self::Code(number),
            1 => Self::Signal(number),
            2 => not_started(Refusing::Program),
            3 => not_started(Refusing::WorkingDirectory),
            4 => not_started(Refusing::Stdin),
            _ => return Err(Malformed("an unknown end")),
        })
    }
}

impl Bytes for Why {
    fn put(&self, to: &mut Vec<u8>) {
        to.push(match self {
            Self::Itself => 0,
            Self::Timeout => 1,
            Self::OutputLimit => 2,
            Self::Cancelled => 3,
        });
    }

    fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(match take_tag(from)? {
            0 => Self::Itself,
            1 => Self::Timeout,
            2 => Self::OutputLimit,
            3 => Self::Cancelled,
            _ => return Err(Malformed("an unknown reason for an end")),
        })
    }
}

impl Bytes for Exited {
    fn put(&self, to: &mut Vec<u8>) {
        self.id.put(to);
        self.end.put(to);
        self.why.put(to);
        self.began.put(to);
        self.ended.put(to);
        self.stdout.put(to);
        self.stderr.put(to);
        self.left.put(to);
    }

    fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(Self {
            id: Bytes::take(from)?,
            end: Bytes::take(from)?,
            why: Bytes::take(from)?,
            began: Bytes::take(from)?,
            ended: Bytes::take(from)?,
            stdout: Bytes::take(from)?,
            stderr: Bytes::take(from)?,
            left: Bytes::take(from)?,
        })
    }
}

impl Bytes for Vanished {
    fn put(&self, to: &mut Vec<u8>) {
        self.id.put(to);
        self.began.put(to);
        self.stdout.put(to);
        self.stderr.put(to);
        self.ended.put(to);
        self.survived.put(to);
    }

    fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(Self {
            id: Bytes::take(from)?,
            began: Bytes::take(from)?,
            stdout: Bytes::take(from)?,
            stderr: Bytes::take(from)?,
            ended: Bytes::take(from)?,
            survived: Bytes::take(from)?,
        })
    }
}
