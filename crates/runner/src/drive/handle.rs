//! Messages to a running event loop.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use undaunted_store::{Findings, StoreError};

use super::message::{AttemptReport, DeliveryOutcome, JobMessage};
use crate::journal::ClaimedJob;
use crate::request::ArrivedResult;
use crate::secrets::Secrets;

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

    /// Delivers the result of an attempt, and waits until it is on disk. None if the loop did not answer;
    /// then the sender should send the result again.
    pub fn deliver(&self, job: &str, arrived: ArrivedResult) -> Option<DeliveryOutcome> {
        const PATIENCE: Duration = Duration::from_secs(30);
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
}
