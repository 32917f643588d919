//! From decisions to records on the disk.

use undaunted_engine::breaker::Report;
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
        let reaction = react(&mut self.job, input, now);
        if mutant::is(Mutant::ActsBeforeWriting) {
            for effect in reaction.records.iter().filter_map(wanted_by) {
                drop(self.act(effect));
            }
        }
        self.pending.records.extend(reaction.records);
        if !reaction.reports.is_empty() {
            let mut cache = self.breakers.borrow_mut();
            cache.report(self.world, &self.job, &reaction.reports);
            let names = reaction.reports.iter().map(Report::breaker).cloned();
            self.pending.breakers.extend(names);
            self.pending.ends_probe |= reaction.reports.iter().any(Report::ends_probe);
        }
    }

    /// Hands the records over to be written, if there are any, and what they tell breakers with them.
    pub(super) fn hand_over(&mut self) {
        let Some(appends) = self.close_batch() else {
            return;
        };
        let tell = self.tell.clone();
        let reached = self.version.0;
        self.world.store.submit(
            appends,
            Box::new(move |result| {
                failpoint::reach("append-after", reached);
                // A loop that has left the job no longer listens.
                drop(tell.send(News::Stored(result)));
            }),
        );
    }

    /// Hands over the result of a probe at once: the next probe, which may be one of another job, must
    /// not be written before it.
    pub(super) fn hand_over_probe(&mut self) {
        if self.pending.ends_probe {
            self.hand_over();
        }
    }

    /// Has something done when everything decided so far is on the disk.
    pub(super) fn when_written(&mut self, what: When) {
        let last = if self.pending.records.is_empty() {
            self.batches.back_mut()
        } else {
            Some(&mut self.pending)
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

    /// What has to be written: records of the job, and behind them facts for breakers. Nothing if there
    /// is nothing new.
    fn close_batch(&mut self) -> Option<Vec<Append>> {
        if self.pending.records.is_empty() {
            return None;
        }
        let mut batch: Batch = std::mem::take(&mut self.pending);
        batch.after = self.version;
        let records: Vec<Vec<u8>> = batch.records.iter().map(Record::encode).collect();
        self.saving.last = records.last().cloned().unwrap_or_default();
        let (of, epoch) = (self.claim.aggregate.clone(), self.claim.epoch);
        let append = Append::new(of, self.version, epoch, records);
        let append = append.taking(batch.taken.iter().copied());
        self.version = append.reaches(self.version);
        let mut appends = vec![append];
        if !batch.breakers.is_empty() {
            let names = std::mem::take(&mut batch.breakers);
            let mut cache = self.breakers.borrow_mut();
            for (name, append) in cache.seal(&self.job, self.version, &names) {
                appends.push(append);
                batch.facts.push(name);
            }
        }
        batch.saved = self.save_for(Occasion::Batch);
        self.batches.push_back(batch);
        failpoint::reach("append-before", self.version.0);
        Some(appends)
    }
}
