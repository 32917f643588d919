//! What a job that is being run waits for.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use undaunted_store::{AppendError, Version};

use super::handle::Post;
use crate::executor::ExecutorMessage;
use crate::request::Arrived;

/// Something a job is told while it is run.
pub(super) enum JobMessage {
    /// The batch of records up to a version is on the disk, where journals have reached these versions; or
    /// it cannot be.
    Stored(Version, Result<Vec<Version>, AppendError>),
    Executor(ExecutorMessage),
    /// The result of an attempt has come, from outside.
    Reported(Report),
    /// The loop is to leave.
    Interrupt,
    /// The job is to end.
    Cancel,
}

/// A result that was sent for an attempt that was taken on.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) arrived: Arrived,
    /// Told what became of it.
    pub(super) known: Sender<Reported>,
}

/// What became of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported {
    /// It was taken, now or before.
    Taken,
    /// The token belongs to no attempt of the job.
    Unknown,
    /// The job is not run here.
    Elsewhere,
}

impl JobMessage {
    /// The job they are about is not run here.
    pub(super) fn nobody_here(self) {
        match self {
            Self::Reported(report) => {
                // The sender may have gone.
                let _ = report.known.send(Reported::Elsewhere);
            }
            // What comes for a job that was left is heard by the process that resumes it.
            Self::Stored(..) | Self::Executor(_) | Self::Interrupt | Self::Cancel => {}
        }
    }
}

/// Something that waits for records to be on the disk.
pub(super) enum When {
    /// The keeper may forget what it knew of before.
    Trust,
    /// The sender of a result hears that it was taken.
    Tell(Sender<Reported>),
}

/// Sends messages to one job of an event loop.
#[derive(Clone)]
pub struct Notifier {
    post: Sender<Post>,
    job: Arc<str>,
}

impl Notifier {
    pub(super) const fn new(post: Sender<Post>, job: Arc<str>) -> Self {
        Self { post, job }
    }

    /// Sends what an executor reports.
    pub fn send(&self, message: ExecutorMessage) {
        self.try_send(message);
    }

    /// The same. False once the loop has gone.
    pub(crate) fn try_send(&self, message: ExecutorMessage) -> bool {
        self.tell(JobMessage::Executor(message))
    }

    pub(super) fn tell(&self, message: JobMessage) -> bool {
        let post = Post::News(Arc::clone(&self.job), message);
        self.post.send(post).is_ok()
    }
}
