//! Messages to the event loop and its jobs, and why a job cannot continue.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use undaunted_engine::task::TokenStatus;
use undaunted_store::{AppendError, Findings, StoreError, Version};

use super::results::MapOutputs;
use crate::{ArrivedResult, ClaimedJob, ExecutorMessage, JournalError, KeeperError, KeeperRefusal, Secrets};

/// How long a sender of a message waits for the answer of a loop.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) enum JobMessage {
    /// The batch up to a version is on disk, with the versions the journals have reached; or why it is not.
    Stored(Version, Result<Vec<Version>, AppendError>),
    Executor(Vec<ExecutorMessage>),
    /// The outputs of the items of the map, which a later command refers to.
    Outputs(Result<MapOutputs, JournalError>),
    Reported(AttemptReport),
    FindToken(TokenQuestion),
    Interrupt,
    Cancel,
    /// Cancel, and give this signal to the running programs; the second time, kill them.
    PassOn(i32),
}

/// A result for an attempt that the service has accepted.
#[derive(Debug)]
pub(super) struct AttemptReport {
    pub(super) arrived: ArrivedResult,
    pub(super) reply: Sender<DeliveryOutcome>,
}

/// Asks which attempt of a job a receipt token belongs to.
#[derive(Debug)]
pub(super) struct TokenQuestion {
    pub(super) step: String,
    pub(super) token: String,
    pub(super) reply: Sender<TokenOwner>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenOwner {
    Here(TokenStatus),
    /// The job does not run in this loop.
    Elsewhere,
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
            Self::FindToken(question) => {
                let _ = question.reply.send(TokenOwner::Elsewhere);
            }
            // The process that resumes the job does not need these messages.
            Self::Stored(..)
            | Self::Executor(_)
            | Self::Outputs(_)
            | Self::Interrupt
            | Self::Cancel
            | Self::PassOn(_) => {}
        }
    }
}

/// What to do when the records decided so far are on disk.
pub(super) enum AfterCommit {
    /// Tell the keeper that all recovered fates are on record.
    Trust,
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
        self.try_send(vec![message]);
    }

    /// False once the loop has ended.
    pub(crate) fn try_send(&self, messages: Vec<ExecutorMessage>) -> bool {
        self.send_message(JobMessage::Executor(messages))
    }

    pub(super) fn send_message(&self, message: JobMessage) -> bool {
        let sender = Message::Job(Arc::clone(&self.job), message);
        self.sender.send(sender).is_ok()
    }
}

pub(super) enum Message {
    Job(Arc<str>, JobMessage),
    Add(Box<ClaimedJob>, Secrets),
    Found(Box<Result<Findings, StoreError>>),
    /// Shut down in good order; the second time, at once.
    Interrupt,
}

/// Sends messages to an event loop. After the loop has ended they are ignored.
#[derive(Clone, Debug)]
pub struct LoopHandle {
    sender: Sender<Message>,
}

impl LoopHandle {
    pub(super) const fn new(sender: Sender<Message>) -> Self {
        Self { sender }
    }

    pub(crate) fn disconnected() -> Self {
        Self::new(channel().0)
    }

    /// Asks the loop to shut down: the first time in good order, the second time at once.
    pub fn interrupt(&self) {
        drop(self.sender.send(Message::Interrupt));
    }

    pub fn add(&self, claimed: ClaimedJob, secrets: Secrets) {
        drop(self.sender.send(Message::Add(Box::new(claimed), secrets)));
    }

    /// Which attempt of a job a receipt token belongs to. None if the loop did not answer.
    pub fn find_token(&self, job: &str, step: &str, token: &str) -> Option<TokenOwner> {
        let (reply, answer) = channel();
        let (step, token) = (step.to_owned(), token.to_owned());
        let question = JobMessage::FindToken(TokenQuestion { step, token, reply });
        drop(self.sender.send(Message::Job(job.into(), question)));
        answer.recv_timeout(PATIENCE).ok()
    }

    /// Delivers the result of an attempt, and waits until it is on disk. None if the loop did not answer;
    /// then the sender should send the result again.
    pub fn deliver(&self, job: &str, arrived: ArrivedResult) -> Option<DeliveryOutcome> {
        self.deliver_later(job, arrived).recv_timeout(PATIENCE).ok()
    }

    /// As [`Self::deliver`], without waiting.
    pub fn deliver_later(&self, job: &str, arrived: ArrivedResult) -> Receiver<DeliveryOutcome> {
        let (reply, answer) = channel();
        let report = JobMessage::Reported(AttemptReport { arrived, reply });
        drop(self.sender.send(Message::Job(job.into(), report)));
        answer
    }

    pub fn cancel(&self, job: &str) {
        drop(self.sender.send(Message::Job(job.into(), JobMessage::Cancel)));
    }

    /// Cancels a job; its running programs get this signal instead of TERM. The second time they are killed at
    /// once.
    pub fn pass_on(&self, job: &str, signal: i32) {
        drop(self.sender.send(Message::Job(job.into(), JobMessage::PassOn(signal))));
    }
}

/// Why a job cannot continue now. Everything on record stays on record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("cannot run commands")]
    Keeper(#[from] KeeperError),
    /// The keeper did not start a command, or cannot store its outcome.
    #[error("the keeper refused a command")]
    Refused(#[source] KeeperRefusal),
    #[error("the function `{name}` is not registered in this program")]
    Function { name: String },
    #[error("cannot write `{}`", path.display())]
    File { path: PathBuf, source: io::Error },
}

impl DriveError {
    pub const fn of_store(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) | Self::Append(AppendError::Store(error)) => Some(error),
            Self::Journal(error) => error.of_store(),
            _ => None,
        }
    }

    /// The store's error, if the job continues when the outage is over.
    pub(super) fn outage(&self) -> Option<&StoreError> {
        self.of_store().filter(|error| error.is_outage())
    }
}
