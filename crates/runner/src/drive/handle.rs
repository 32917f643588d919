//! A way to speak to a running loop from elsewhere.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use undaunted_store::{Findings, StoreError};

use super::message::{JobMessage, Report, Reported};
use crate::journal::ClaimedJob;
use crate::request::Arrived;
use crate::secrets::Secrets;

/// Something a loop is told.
pub(super) enum Post {
    /// What has happened to a job.
    News(Arc<str>, JobMessage),
    /// A job to be run.
    Add(Box<ClaimedJob>, Secrets),
    /// What the store has found for the loop's question.
    Found(Box<Result<Findings, StoreError>>),
    /// Somebody wants it to leave: in good order, and the second time at once.
    Interrupt,
}

/// A way to speak to a running loop. What is said to one that has left is not heard.
#[derive(Clone, Debug)]
pub struct Handle {
    post: Sender<Post>,
}

impl Handle {
    pub(super) const fn new(post: Sender<Post>) -> Self {
        Self { post }
    }

    /// A way to speak to nobody.
    pub(crate) fn of_nobody() -> Self {
        Self::new(channel().0)
    }

    /// Asks it to leave: the first time in good order, the second time at once.
    pub fn interrupt(&self) {
        drop(self.post.send(Post::Interrupt));
    }

    /// Asks it to run a job as well.
    pub fn add(&self, held: ClaimedJob, secrets: Secrets) {
        drop(self.post.send(Post::Add(Box::new(held), secrets)));
    }

    /// Hands on the result of an attempt of a job, and waits until it is on the disk. Nothing if nobody
    /// could look at it: then it is to be sent again.
    pub fn deliver(&self, job: &str, arrived: Arrived) -> Option<Reported> {
        /// How long a result waits for the loop to look at it.
        const PATIENCE: Duration = Duration::from_secs(30);
        self.hand_on(job, arrived).recv_timeout(PATIENCE).ok()
    }

    /// The same, without waiting: what became of it can be received.
    pub fn hand_on(&self, job: &str, arrived: Arrived) -> Receiver<Reported> {
        let (known, answer) = channel();
        let report = JobMessage::Reported(Report { arrived, known });
        drop(self.post.send(Post::News(job.into(), report)));
        answer
    }

    /// Asks it to cancel a job.
    pub fn cancel(&self, job: &str) {
        drop(self.post.send(Post::News(job.into(), JobMessage::Cancel)));
    }
}
