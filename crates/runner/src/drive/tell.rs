//! From decisions to records on the disk.

use undaunted_engine::decide::react;
use undaunted_engine::event::Record;
use undaunted_engine::input::Input;
use undaunted_store::Append;

use super::error::DriveError;
use super::main_loop::{Batch, Drive};
use super::news::News;
use crate::breakers::was_overtaken;
use crate::failpoint;

impl Drive<'_> {
    /// Tells the job something; what follows from it goes with the next batch.
    pub(super) fn decide(&mut self, input: &Input) {
        let records = react(&mut self.job, input, self.clock.now());
        self.pending.records.extend(records);
        let (told, changes) = self.job.breakers_mut().take();
        self.pending.told.extend(told);
        self.pending.changes.extend(changes);
    }

    /// Hands the records over to be written, if there are any.
    pub(super) fn hand_over(&mut self) -> Result<(), DriveError> {
        let appends = self.close_batch()?;
        if !appends.is_empty() {
            let tell = self.tell.clone();
            let reached = self.version.0;
            self.world.store.submit(
                appends,
                Box::new(move |result| {
                    failpoint::reach("append-after", reached);
                    // Whoever no longer listens has left.
                    drop(tell.send(News::Stored(result)));
                }),
            );
        }
        Ok(())
    }

    /// The same, and waits until they are on the disk. What else is heard meanwhile is set aside.
    pub(super) fn write(&mut self) -> Result<(), DriveError> {
        self.hand_over()?;
        while !self.batches.is_empty() {
            match self.news.recv() {
                Ok(News::Stored(Ok(()))) => self.on_disk.extend(self.batches.pop_front()),
                Ok(News::Stored(Err(error))) if was_overtaken(&error) => {
                    self.overtaken()?;
                    self.hand_over()?;
                }
                Ok(News::Stored(Err(error))) => return Err(error.into()),
                Ok(other) => self.set_aside.push_back(other),
                // This loop holds a sender itself.
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    fn close_batch(&mut self) -> Result<Vec<Append>, DriveError> {
        if self.pending.records.is_empty() {
            return Ok(Vec::new());
        }
        let mut batch: Batch = std::mem::take(&mut self.pending);
        batch.after = self.version;
        let records = batch.records.iter().map(Record::encode);
        let append = Append::new(
            self.claim.aggregate.clone(),
            self.version,
            self.claim.epoch,
            records.collect(),
        );
        let append = append.taking(batch.taken.iter().copied());
        self.version = append.reaches();
        let mut appends = vec![append];
        appends.extend(self.breakers_of(&batch)?);
        self.batches.push_back(batch);
        failpoint::reach("append-before", self.version.0);
        Ok(appends)
    }
}
