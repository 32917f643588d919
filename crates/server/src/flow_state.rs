//! Flows, as they are read from the store to be shown.

use serde_json::Value;
use undaunted_engine::catalog::FlowEntry;
use undaunted_engine::event::Record;
use undaunted_engine::job::{Job, Plans};
use undaunted_engine::view::{FlowEventView, Projection, flow, flow_event};
use undaunted_runner::journal::{JournalError, aggregate, begin, decode, replay};
use undaunted_store::{Store, Version};

use crate::answer::json_of;

/// A flow and what has happened to it, up to a version of its journal.
#[derive(Debug)]
pub(crate) struct FollowedFlow {
    job: Job,
    past: Projection,
    pub(crate) version: Version,
}

impl FollowedFlow {
    /// The flow after its first record, and the event of that record. `None` if it does not exist yet.
    pub(crate) fn begin(
        store: &dyn Store,
        flow: &str,
        plans: &Plans,
    ) -> Result<Option<(Self, Option<FlowEventView>)>, JournalError> {
        let Some(first) = store.read(&aggregate(flow)?, Version::EMPTY)?.next() else {
            return Ok(None);
        };
        let (version, bytes) = first?;
        let record = decode(flow, version, &bytes)?;
        let job = begin(flow, &record, plans)?;
        if job.workflow().flow.is_none() {
            let job = flow.to_owned();
            return Err(JournalError::NotFound { job });
        }
        let mut past = Projection::following_all();
        past.take(&job, version.0, &record);
        let event = flow_event(&job, &past, version.0, &record);
        Ok(Some((Self { job, past, version }, event)))
    }

    /// Takes at most `most` further records of the journal. Returns how many there were.
    pub(crate) fn follow(
        &mut self,
        store: &dyn Store,
        most: usize,
        mut each: impl FnMut(Version, Option<FlowEventView>),
    ) -> Result<usize, JournalError> {
        let mut read = 0_usize;
        for entry in store.read(&aggregate(self.job.id())?, self.version)?.take(most) {
            let (version, bytes) = entry?;
            let record = decode(self.job.id(), version, &bytes)?;
            let event = self.take(version, &record);
            each(version, event);
            read = read.saturating_add(1);
        }
        Ok(read)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.job.stage.has_ended()
    }

    /// Replays the journal of a flow.
    pub(crate) fn read(store: &dyn Store, flow: &str, plans: &Plans) -> Result<Self, JournalError> {
        let mut past = Projection::following_all();
        let take = |job: &Job, version: Version, record: &Record| {
            past.take(job, version.0, record);
        };
        let (job, version) = replay(store, flow, plans, take)?;
        if job.workflow().flow.is_none() {
            let job = flow.to_owned();
            return Err(JournalError::NotFound { job });
        }
        Ok(Self { job, past, version })
    }

    /// Takes the next record, and returns its event if there is one.
    fn take(&mut self, version: Version, record: &Record) -> Option<FlowEventView> {
        self.job.apply(record);
        self.past.take(&self.job, version.0, record);
        self.version = version;
        flow_event(&self.job, &self.past, version.0, record)
    }

    /// Labels and parent come from the catalog entry of the flow.
    pub(crate) fn json(&self, entry: Option<&FlowEntry>) -> Value {
        json_of(&flow(&self.job, &self.past, entry))
    }
}

#[cfg(test)]
mod tests;
