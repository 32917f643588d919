//! Decisions, and committing their records.

use undaunted_engine::breaker::BreakerReport;
use undaunted_engine::decide::react;
use undaunted_engine::effect::wanted_by;
use undaunted_engine::input::Input;
use undaunted_engine::mutant::{self, Mutant};
use undaunted_store::{Append, Version};

use super::message::{AfterCommit, DeliveryOutcome, JobMessage};
use super::running::JobDriver;
use super::snapshot::SnapshotOccasion;
use crate::failpoint;

impl JobDriver<'_> {
    /// Gives the job an input; the records that follow go with the next batch.
    pub(super) fn decide(&mut self, input: &Input) {
        let now = self.now();
        let reaction = react(&mut self.job, input, now);
        if mutant::is(Mutant::ActsBeforeCommit) {
            for effect in reaction.records.iter().filter_map(wanted_by) {
                drop(self.act(effect));
            }
        }
        self.journal.pending.records.extend(reaction.records);
        if !reaction.reports.is_empty() {
            let mut cache = self.breakers.borrow_mut();
            cache.report(&self.job, &reaction.reports);
            let names = reaction.reports.iter().map(BreakerReport::breaker).cloned();
            self.journal.pending.breakers.extend(names);
            self.journal.pending.ends_probe |= reaction.reports.iter().any(BreakerReport::ends_probe);
        }
    }

    /// Submits pending records, if there are any, with their facts for breakers.
    pub(super) fn submit_pending(&mut self) {
        if self.breakers.borrow().is_cut_off {
            return;
        }
        if let Some(appends) = self.close_batch() {
            self.submit(appends, self.journal.version);
        }
    }

    pub(super) fn submit(&self, appends: Vec<Append>, reached: Version) {
        let notifier = self.context.notifier.clone();
        self.context.services.store.submit(
            appends,
            Box::new(move |result| {
                failpoint::reach("append-after", reached.0);
                // If the loop no longer runs the job, it ignores this.
                notifier.send_message(JobMessage::Stored(reached, result));
            }),
        );
    }

    /// Submits the result of a probe at once: the next probe, perhaps of another job, must not be
    /// written before it.
    pub(super) fn submit_probe_result(&mut self) {
        if self.journal.pending.ends_probe {
            self.submit_pending();
        }
    }

    /// Runs an action when everything decided so far is on disk.
    pub(super) fn when_written(&mut self, action: AfterCommit) {
        if let Some(action) = self.journal.when_written(action) {
            self.written(action);
        }
    }

    pub(super) fn written(&mut self, action: AfterCommit) {
        match action {
            AfterCommit::Trust => self.executors.programs.trust(),
            // The sender may no longer wait.
            AfterCommit::Answer(reply) => drop(reply.send(DeliveryOutcome::Taken)),
        }
    }

    /// The appends of the pending batch: records of the job, and behind them facts for breakers.
    fn close_batch(&mut self) -> Option<Vec<Append>> {
        let (mut batch, append) = self.journal.close()?;
        let mut appends = vec![append];
        let mut cache = self.breakers.borrow_mut();
        batch.order = cache.next_batch();
        if !batch.breakers.is_empty() {
            let names = std::mem::take(&mut batch.breakers);
            for (name, append) in cache.seal(&self.job, self.journal.version, &names) {
                appends.push(append);
                batch.facts.push(name);
            }
        }
        drop(cache);
        batch.saved = self.save_for(SnapshotOccasion::Batch);
        self.journal.track(batch);
        failpoint::reach("append-before", self.journal.version.0);
        Some(appends)
    }
}
