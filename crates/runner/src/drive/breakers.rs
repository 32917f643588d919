//! The breakers of a job while it runs: read, written together with its records, looked at again.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use undaunted_engine::breaker::{BreakerState, Told};
use undaunted_engine::task::{Task, TaskWork};
use undaunted_policy::Phase;
use undaunted_policy::mutant::{self, Mutant};
use undaunted_store::Append;

use super::error::DriveError;
use super::running::{Batch, Drive};
use crate::breakers;
use crate::executor::origin;

impl Drive<'_> {
    /// Learns what every breaker is that a command of the job asks.
    pub(super) fn meet_breakers(&mut self) -> Result<(), DriveError> {
        let mut names = self.job.breakers_in_use();
        names.extend(self.job.breakers().names().cloned());
        for name in names {
            self.meet_breaker(&name)?;
        }
        Ok(())
    }

    /// Learns what a breaker is. Whether that is not what was known.
    fn meet_breaker(&mut self, name: &Arc<str>) -> Result<bool, DriveError> {
        let mut board = self.board.borrow_mut();
        let (version, state) = board.breaker(&*self.world.store, name)?;
        if self.breakers.insert(Arc::clone(name), *version) == Some(*version) {
            return Ok(false);
        }
        match state {
            Some(state) => self.job.learn(name, state.clone(), self.now()),
            // What this job has made of it itself is not written.
            None => self.job.breakers_mut().unlearn(name),
        }
        Ok(state.is_some())
    }

    /// Learns what other jobs have made of the breakers it knows. While it has something to say about
    /// them itself, that is found out when it says it. Whether they have changed.
    pub(super) fn look_at_breakers(&mut self) -> Result<bool, DriveError> {
        let speaks = |batch: &Batch| !batch.told.is_empty();
        if self.batches.iter().chain([&self.pending]).any(speaks) {
            return Ok(false);
        }
        let mut changed = false;
        let names: Vec<Arc<str>> = self.breakers.keys().cloned().collect();
        for name in names {
            changed |= self.meet_breaker(&name)?;
        }
        Ok(changed)
    }

    /// Says what the next attempt of an item goes to, if that has a breaker of its own; or why that
    /// cannot be said.
    pub(super) fn aim(
        &mut self,
        step: u32,
        item: u32,
        task: &Task,
    ) -> Result<Result<(), String>, DriveError> {
        let TaskWork::Call(call) = &task.work else {
            return Ok(Ok(()));
        };
        // The items of a step are mostly sent to one place.
        let target = match self.aimed_at.take().filter(|(url, _)| *url == call.url) {
            Some((_, target)) => target,
            None => match origin(&call.url) {
                Ok(target) => target,
                Err(why) => return Ok(Err(why)),
            },
        };
        self.aimed_at = Some((call.url.clone(), target.clone()));
        if !self.world.endpoints.allow(&call.url) {
            // The address may hold a secret, so it is not shown.
            let why = format!("addresses of {target} like its own may not be called from here");
            return Ok(Err(why));
        }
        let active = self.job.active(step, item).map(|active| active.command);
        let command = active.or_else(|| self.job.plan().first(step));
        let command = command.and_then(|command| self.job.plan().command(command));
        let Some(breaker) = command.and_then(|command| command.breaker.as_deref()) else {
            return Ok(Ok(()));
        };
        if breaker.name.is_none() {
            let settings = breaker.settings;
            self.job.aim(step, item, &target, settings);
            if !self.breakers.contains_key(target.as_str()) {
                if mutant::is(Mutant::BreakersMetTooSoon) {
                    self.meet_breakers()?;
                }
                // No other: something may have been said to those that is not handed over yet.
                self.meet_breaker(&Arc::from(target))?;
            }
        }
        Ok(Ok(()))
    }

    /// The settings of the job were changed: its breakers take them over.
    pub(super) fn configure_breakers(&self) -> Result<(), DriveError> {
        let now = self.now();
        loop {
            let plan = self.job.plan();
            // The event that tells of it is the one of the change.
            let (appends, _) = breakers::configure(&*self.world.store, self.job.id(), plan, now)?;
            if appends.is_empty() {
                return Ok(());
            }
            let written = self.world.store.append(appends);
            self.board.borrow_mut().forget();
            match written {
                Err(error) if breakers::was_overtaken(&error) => {}
                result => return Ok(result.map(drop)?),
            }
        }
    }

    /// Whether it has something to say to breakers: that is handed over together with what other jobs
    /// say.
    pub(super) fn speaks(&self) -> bool {
        self.unanswered.is_none() && !self.pending.told.is_empty()
    }

    /// What the records that are not handed over yet say to breakers: what changes them, and for starts
    /// that they are as they were known. If another job has said something since, they are put
    /// together again.
    pub(super) fn say(&mut self) -> Result<Vec<Append>, DriveError> {
        if self.is_late()? {
            let pending = std::mem::take(&mut self.pending);
            self.put_together(pending)?;
        }
        let touched: BTreeSet<&Arc<str>> = self.pending.told.iter().map(Told::breaker).collect();
        let mut appends = Vec::new();
        for name in touched {
            let records = self.pending.changes.iter().filter(|(of, _)| of == name);
            let records: Vec<_> = records.map(|(_, record)| record).collect();
            let version = self.breakers.get(name).copied().unwrap_or_default();
            let append = breakers::append(name, version, &records)?;
            let state = self.job.breakers().get(name).cloned();
            let mut board = self.board.borrow_mut();
            board.hand_over(name, append.reaches(version), state);
            self.breakers
                .insert(Arc::clone(name), append.reaches(version));
            appends.push(append);
        }
        Ok(appends)
    }

    /// Whether another job has said something to a breaker since it was known here.
    fn is_late(&self) -> Result<bool, DriveError> {
        let mut board = self.board.borrow_mut();
        for told in &self.pending.told {
            let (version, _) = board.breaker(&*self.world.store, told.breaker())?;
            if self.breakers.get(told.breaker()) != Some(version) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Another process was faster to change a breaker, so the oldest batch under way was not written,
    /// nor was any after it. When all of them were answered they are put together again.
    pub(super) fn overtaken(&mut self) -> Result<(), DriveError> {
        let left = self.unanswered.unwrap_or_default().saturating_sub(1);
        self.unanswered = Some(left).filter(|left| *left > 0);
        if self.unanswered.is_some() {
            return Ok(());
        }
        let mut batches: VecDeque<Batch> = std::mem::take(&mut self.batches);
        batches.push_back(std::mem::take(&mut self.pending));
        let mut all = Batch::default();
        if let Some(first) = batches.front() {
            self.version = first.after;
        }
        for batch in batches {
            all.records.extend(batch.records);
            all.ended.extend(batch.ended);
            all.taken.extend(batch.taken);
            all.told.extend(batch.told);
            all.then.extend(batch.then);
        }
        self.put_together(all)
    }

    /// Puts records together again, from what breakers are now, that are the last ones and were not
    /// written.
    fn put_together(&mut self, mut batch: Batch) -> Result<(), DriveError> {
        self.breakers.clear();
        if let Err(error) = self.meet_breakers() {
            // They are part of the job, and not of its journal.
            self.pending = batch;
            return Err(error);
        }
        batch.records = self.job.redo(batch.records, batch.told);
        (batch.told, batch.changes) = self.job.breakers_mut().take();
        let running = &self.job.running;
        self.prepared.retain(|start, _| running.contains_key(start));
        self.pending = batch;
        Ok(())
    }

    /// A probe whose job is gone would keep everybody waiting. After the time that an outage is waited
    /// for, somebody else may probe.
    pub(super) fn look_at_probes(&mut self) -> Result<(), DriveError> {
        let now = self.now();
        let mut given_up = false;
        let names: Vec<Arc<str>> = self.job.breakers().names().cloned().collect();
        for name in names {
            let Some(state) = self.job.breakers().get(&name) else {
                continue;
            };
            let probe = state.probe.clone().filter(|probe| {
                probe.job != self.job.id()
                    && probe.since.after(state.settings.recovery_timeout) <= now
            });
            let Some(probe) = probe else { continue };
            let store = &*self.world.store;
            if !self.board.borrow_mut().is_run(store, &probe.job)? {
                given_up = true;
                let id = Some(self.job.id());
                breakers::change(&*self.world.store, &name, id, now, |state| {
                    let same = state.probe.as_ref() == Some(&probe) && is_probing(state);
                    same.then(|| state.abandon_probe())
                })?;
            }
        }
        if given_up {
            self.board.borrow_mut().forget();
        }
        Ok(())
    }
}

const fn is_probing(state: &BreakerState) -> bool {
    matches!(state.breaker.phase(), Phase::HalfOpen { probing: true, .. })
}
