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
    /// The batch up to a version is on disk, with the versions the journals have reached; or why it is not.
    Stored(Version, Result<Vec<Version>, AppendError>),
    Executor(ExecutorMessage),
    /// The outputs of the items of the map, which a later command refers to.
    Outputs(Result<MapOutputs, JournalError>),
    Reported(AttemptReport),
    Interrupt,
    Cancel,
}

/// A result for an attempt that the service has accepted.
#[derive(Debug)]
pub(super) struct AttemptReport {
    pub(super) arrived: ArrivedResult,
    pub(super) reply: Sender<DeliveryOutcome>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// On disk, now or before.
    Taken,
    Unknown,
    Elsewhere,
}

impl JobMessage {
    /// Answers a message to a job that does not run here.
    pub(super) fn reject(self) {
        match self {
            Self::Reported(report) => {
                // The sender may no longer wait.
                let _ = report.reply.send(DeliveryOutcome::Elsewhere);
            }
            // The process that resumes the job does not need these messages.
            Self::Stored(..) | Self::Executor(_) | Self::Outputs(_) | Self::Interrupt | Self::Cancel => {}
        }
    }
}

/// What to do when the records decided so far are on disk.
pub(super) enum AfterCommit {
    /// Tell the keeper that all recovered fates are on record.
    Trust,
    /// Answer the sender of a result.
    Answer(Sender<DeliveryOutcome>),
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

    /// False once the loop has ended.
    pub(crate) fn try_send(&self, message: ExecutorMessage) -> bool {
        self.send_message(JobMessage::Executor(message))
    }

    pub(super) fn send_message(&self, message: JobMessage) -> bool {
        let sender = Message::Job(Arc::clone(&self.job), message);
        self.sender.send(sender).is_ok()
    }
}
