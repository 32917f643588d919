//! What the loop waits for.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use undaunted_engine::input::AttemptEnd;
use undaunted_engine::task::SubFlow;
use undaunted_store::{AppendError, Version};

use crate::executor::Items;
use crate::keeper::Event;
use crate::request::Arrived;

/// Something the loop is told.
pub(super) enum News {
    /// A batch of records is on the disk, where journals have reached these versions; or it cannot be.
    Stored(Result<Vec<Version>, AppendError>),
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
pub(super) struct Report {
    /// It.
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

impl News {
    /// Nobody runs the job they are about.
    pub(super) fn nobody_here(self) {
        if let Self::Reported(report) = self {
            // They may have gone.
            let _ = report.known.send(Reported::Elsewhere);
        }
    }
}

/// What a job asks of the loop that runs it.
pub(super) enum Ask {
    /// To run a flow that an item waits for, or to wait for one that is there already.
    Run {
        /// The number of the start.
        start: u64,
        /// The flow.
        flow: Arc<SubFlow>,
    },
    /// To end one that nobody waits for any more.
    Cancel(Arc<SubFlow>),
}

/// Something that waits for records to be on the disk.
pub(super) enum When {
    /// The keeper may forget what it knew of before.
    Trust,
    /// Whoever sent a result hears that it was taken.
    Tell(Sender<Reported>),
}

/// Where the news of one job go.
#[derive(Clone)]
pub(super) struct Tell(Arc<dyn Fn(News) -> Result<(), Gone> + Send + Sync>);

/// Nobody hears news any more.
#[derive(Debug)]
pub(super) struct Gone;

impl Tell {
    pub(super) fn by(tell: impl Fn(News) -> Result<(), Gone> + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    pub(super) fn send(&self, news: News) -> Result<(), Gone> {
        (self.0)(news)
    }
}
