//! From decisions to records on the disk.

use undaunted_engine::decide::react;
use undaunted_engine::effect::wanted_by;
use undaunted_engine::event::Record;
use undaunted_engine::input::Input;
use undaunted_policy::mutant::{self, Mutant};
use undaunted_store::Append;

use super::news::{News, Reported, When};
use super::running::{Batch, Drive};
use super::save::Occasion;
use crate::failpoint;

impl Drive<'_> {
    /// Tells the job something; what follows from it goes with the next batch.
    pub(super) fn decide(&mut self, input: &Input) {
        let now = self.now();
        let records = react(&mut self.job, input, now);
        if mutant::is(Mutant::ActsBeforeWriting) {
            for effect in records.iter().filter_map(wanted_by) {
                drop(self.act(effect));
            }
        }
        self.pending.records.extend(records);
        let (told, changes) = self.job.breakers_mut().take();
        self.pending.told.extend(told);
        self.pending.changes.extend(changes);
    }

    /// Hands the records over to be written, if there are any. Those that say something to breakers
    /// wait for the loop, which hands them over together with those of other jobs.
    pub(super) fn hand_over(&mut self) {
        if self.unanswered.is_some() || self.speaks() {
            return;
        }
        if let Some(append) = self.close_batch() {
            let tell = self.tell.clone();
            let reached = self.version.0;
            self.world.store.submit(
                vec![append],
                Box::new(move |result| {
                    failpoint::reach("append-after", reached);
                    // Whoever no longer listens has left.
                    drop(tell.send(News::Stored(result.map(drop))));
                }),
            );
        }
    }

    /// Has something done when everything decided so far is on the disk.
    pub(super) fn when_written(&mut self, what: When) {
        let waits = !self.pending.records.is_empty() || self.unanswered.is_some();
        let last = if waits {
            Some(&mut self.pending)
        } else {
            self.batches.back_mut()
        };
        match last {
            Some(batch) => batch.then.push(what),
            None => self.written(what),
        }
    }

    /// Does what waited for records to be on the disk.
    pub(super) fn written(&mut self, what: When) {
        match what {
            When::Trust => {
                self.is_settling = false;
                if let Some(keeper) = &self.keeper {
                    keeper.trust();
                }
            }
            // They may have gone.
            When::Tell(known) => {
                let _ = known.send(Reported::Taken);
            }
        }
    }

    /// What has to be written of the journal; nothing if there is nothing new.
    pub(super) fn close_batch(&mut self) -> Option<Append> {
        if self.pending.records.is_empty() {
            return None;
        }
        let mut batch: Batch = std::mem::take(&mut self.pending);
        batch.after = self.version;
        let records: Vec<Vec<u8>> = batch.records.iter().map(Record::encode).collect();
        self.saving.last = records.last().cloned().unwrap_or_default();
        let append = Append::new(
            self.claim.aggregate.clone(),
            self.version,
            self.claim.epoch,
            records,
        );
        let append = append.taking(batch.taken.iter().copied());
        self.version = append.reaches(self.version);
        batch.saved = self.save_for(Occasion::Batch);
        self.batches.push_back(batch);
        failpoint::reach("append-before", self.version.0);
        Some(append)
    }
}
