//! What the loop waits for.

use std::sync::mpsc::Sender;

use undaunted_engine::input::AttemptEnd;
use undaunted_store::AppendError;

use crate::executor::Items;
use crate::keeper::Event;

/// Something the loop is told.
pub(super) enum News {
    /// A batch of records is on the disk, or cannot be.
    Stored(Result<(), AppendError>),
    /// From the keeper.
    Keeper(Event),
    /// An attempt that needed no keeper has ended.
    Ended(Box<AttemptEnd>),
    /// A request was taken on, and its result comes later.
    Accepted(u64),
    /// The result of an attempt has come, from outside.
    Reported(Report),
    /// The items of a map were read from a file.
    Items { step: u32, items: Items },
    /// Somebody wants the loop to leave.
    Interrupt,
    /// Somebody wants the job to end.
    Cancel,
}

/// A result that somebody sends for an attempt that was taken on.
#[derive(Debug)]
pub struct Report {
    /// The step.
    pub step: String,
    /// The token the attempt was made with.
    pub token: String,
    /// What it gave, as JSON, or why it failed.
    pub result: Result<String, String>,
    /// Told whether the token belongs to an attempt of the job.
    pub known: Sender<bool>,
}

/// A way to speak to a running loop from elsewhere.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(super) news: Sender<News>,
}

impl Handle {
    /// Asks it to leave: the first time in good order, the second time at once.
    pub fn interrupt(&self) {
        // If it has left already there is nothing to ask.
        drop(self.news.send(News::Interrupt));
    }

    /// Hands on the result of an attempt.
    pub fn report(&self, report: Report) {
        drop(self.news.send(News::Reported(report)));
    }

    /// Asks it to cancel the job.
    pub fn cancel(&self) {
        drop(self.news.send(News::Cancel));
    }
}
