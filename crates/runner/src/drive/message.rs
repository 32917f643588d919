//! Messages to a running job.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use undaunted_store::{AppendError, Version};

use super::handle::Message;
use super::results::MapOutputs;
use crate::executor::ExecutorMessage;
use crate::journal::JournalError;
use crate::request::ArrivedResult;

pub(super) enum JobMessage {
    /// The batch up to a version is on the disk, with the versions the journals have reached; or why
    /// not.
    Stored(Version, Result<Vec<Version>, AppendError>),
    Executor(ExecutorMessage),
    /// What the items of the map gave, which a later command refers to.
    Outputs(Result<MapOutputs, JournalError>),
    Reported(AttemptReport),
    Interrupt,
    Cancel,
}

/// A result for an attempt that the other side has accepted.
#[derive(Debug)]
pub(super) struct AttemptReport {
    pub(super) arrived: ArrivedResult,
    pub(super) known: Sender<Reported>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported {
    /// On the disk, now or before.
    Taken,
    Unknown,
    Elsewhere,
}

impl JobMessage {
    /// Answers a message to a job that does not run here.
    pub(super) fn reject(self) {
        match self {
            Self::Reported(report) => {
                // The sender may have gone.
                let _ = report.known.send(Reported::Elsewhere);
            }
            // The process that resumes the job learns of these by itself.
            Self::Stored(..) | Self::Executor(_) | Self::Outputs(_) | Self::Interrupt | Self::Cancel => {}
        }
    }
}

pub(super) enum AfterCommit {
    /// Let the keeper forget what it knew before this engine.
    Trust,
    /// Tell the sender of a result that it was taken.
    Tell(Sender<Reported>),
}

#[derive(Clone)]
pub struct Notifier {
    sender: Sender<Message>,
    job: Arc<str>,
}

impl Notifier {
    pub(super) const fn new(sender: Sender<Message>, job: Arc<str>) -> Self {
        Self { sender, job }
    }

    pub fn send(&self, message: ExecutorMessage) {
        self.try_send(message);
    }

    /// False once the loop has gone.
    pub(crate) fn try_send(&self, message: ExecutorMessage) -> bool {
        self.send_message(JobMessage::Executor(message))
    }

    pub(super) fn send_message(&self, message: JobMessage) -> bool {
        let sender = Message::Job(Arc::clone(&self.job), message);
        self.sender.send(sender).is_ok()
    }
}
