//! What the world says, and what follows from it.

use undaunted_engine::decide::cause_in_words;
use undaunted_engine::effect;
use undaunted_engine::event::Event as Fact;
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::StepStage;
use undaunted_engine::task::{Found, TaskWork};
use undaunted_policy::mutant::{self, Mutant};
use undaunted_policy::{Cause, Reason};
use undaunted_store::Version;

use super::error::DriveError;
use super::news::News;
use super::running::{Batch, Drive};
use crate::executor::{Items, Reading, ended, items_of};
use crate::failpoint;
use crate::keeper::{Event, Refusal};
use crate::request::Asked;
use crate::spool::{End, Exited};

impl Drive<'_> {
    pub(super) fn hear(&mut self, news: News) -> Result<(), DriveError> {
        match news {
            News::Stored(Ok(reached)) => {
                if let Some(batch) = self.batches.pop_front() {
                    self.stored(batch, &reached)?;
                }
            }
            News::Stored(Err(_)) if mutant::is(Mutant::FailedWriteIgnored) => {
                if let Some(batch) = self.batches.pop_front() {
                    self.stored(batch, &[])?;
                }
            }
            News::Stored(Err(error)) => return Err(error.into()),
            News::Keeper(event) => self.hear_keeper(event)?,
            News::Ended(end) => self.attempt_ended(*end),
            News::Accepted(start) => {
                self.calls.forget(start);
                self.decide(&Input::Accepted { start });
            }
            News::Reported(report) => self.reported(report),
            News::Items { step, items } => self.items_read(step, items),
            News::Interrupt => self.interrupted(),
            News::Cancel => self.decide(&Input::Cancel),
        }
        self.hand_over_probe();
        Ok(())
    }

    /// Records are on the disk: now they may have consequences.
    fn stored(&mut self, mut batch: Batch, reached: &[Version]) -> Result<(), DriveError> {
        if !batch.facts.is_empty() {
            let facts = batch.facts.iter().zip(reached.iter().skip(1).copied());
            let seq = batch.after.after(batch.records.len());
            let mut cache = self.breakers.borrow_mut();
            cache.written(self.world, &self.job, seq, facts)?;
            let turned = cache.take_turned(Some(&self.job.shared_id()));
            drop(cache);
            for turned in &turned {
                self.turned(turned);
            }
        }
        if let Some(saved) = batch.saved.take() {
            self.write_saved(batch.after.after(batch.records.len()), saved);
        }
        for then in batch.then {
            self.written(then);
        }
        let mut reads = false;
        for (seq, record) in (batch.after.0.saturating_add(1)..).zip(&batch.records) {
            self.observer.recorded(&self.job, seq, record);
            reads |= matches!(record.event, Fact::StepStarted { .. });
            if record.event == Fact::JobSuspended {
                failpoint::reach("suspend-after", 1);
            }
            if let Some(effect) = effect::wanted_by(record) {
                self.act(effect)?;
            }
        }
        if reads {
            for effect in effect::reading(&self.job) {
                self.act(effect)?;
            }
        }
        if let Some(keeper) = &self.keeper {
            for start in &batch.ended {
                // One that has gone forgets by itself, or is told again.
                keeper.forget(*start);
                failpoint::reach("forget-after", *start);
            }
        }
        Ok(())
    }

    fn hear_keeper(&mut self, event: Event) -> Result<(), DriveError> {
        match event {
            Event::Began(running) => {
                failpoint::reach("begin-after", running.id);
                if let (Some(slot), Some(keeper)) = (running.slot, &self.keeper) {
                    self.observer.began(running.id, keeper.slot(slot));
                }
            }
            Event::Exited(exited) => self.exited(&exited),
            Event::Refused { id: Some(id), why } => match why {
                // It runs, or has run: its end comes or has come.
                Refusal::Known => {}
                Refusal::Cancelled if !self.is_unwanted(id) => {
                    self.unbegun.insert(id);
                }
                Refusal::Cancelled => self.attempt_ended(AttemptEnd {
                    start: id,
                    failure: Some(Cause::Interrupted),
                    error: "it was cancelled before it began".to_owned(),
                    ..AttemptEnd::default()
                }),
                why => return Err(DriveError::Refused(why)),
            },
            Event::Refused { id: None, why } => return Err(DriveError::Refused(why)),
            Event::Gone => {
                self.keeper = None;
                self.attach()?;
            }
        }
        Ok(())
    }

    /// Whether an attempt is ended because nobody waits for it any more.
    fn is_unwanted(&self, start: u64) -> bool {
        let place = self.job.running.get(&start);
        place.map_or_else(
            || self.job.is_stopping().is_some(),
            |(step, item)| self.job.ends(*step, *item),
        )
    }

    /// A program has ended.
    pub(super) fn exited(&mut self, exited: &Exited) {
        failpoint::reach("ended-before", exited.id);
        let Some(keeper) = &self.keeper else { return };
        let reading = self.reading_of(exited.id);
        let what = match exited.end {
            // Putting it together again costs something, and only this end is told with it.
            End::NotStarted(_) => self.program_of(exited.id),
            End::Code(_) | End::Signal(_) => <[String; 2]>::default(),
        };
        let end = ended(exited, &**keeper, &self.secrets, reading, &what);
        self.attempt_ended(end);
    }

    pub(super) fn attempt_ended(&mut self, end: AttemptEnd) {
        self.pending.ended.push(end.start);
        if mutant::is(Mutant::ForgetsBeforeWriting)
            && let Some(keeper) = &self.keeper
        {
            keeper.forget(end.start);
        }
        self.told.remove(&end.start);
        self.calls.forget(end.start);
        self.sub_flows.remove(&end.start);
        if let Some(step) = self.input_of(end.start) {
            return self.input_ended(step, &end);
        }
        self.decide(&Input::Ended(Box::new(end)));
        if self.pending.records.is_empty()
            && let Some(start) = self.pending.ended.pop()
            // It was known already: nothing is written, unless it is being written just now.
            && !self.batches.iter().any(|batch| batch.ended.contains(&start))
            && let Some(keeper) = &self.keeper
        {
            keeper.forget(start);
        }
    }

    /// The step whose items the command with this number gives.
    fn input_of(&self, start: u64) -> Option<u32> {
        let mut steps = self.job.open_steps();
        let found = steps.find(|(_, state)| state.stage == StepStage::Reading(Some(start)));
        found.map(|(step, _)| step)
    }

    fn input_ended(&mut self, step: u32, end: &AttemptEnd) {
        self.reading.remove(&step);
        let Some(map) = self.job.plan().map(step) else {
            return;
        };
        let items = match end.failure {
            None => {
                let output = end.output.as_deref().unwrap_or_default();
                items_of(map, "from the command", output.as_bytes())
            }
            Some(cause) => {
                let reason = match cause {
                    Cause::Interrupted => Reason::Interrupted,
                    _ => Reason::Attempts,
                };
                let cause = cause_in_words(cause);
                let said = match end.error.as_str() {
                    "" => cause,
                    said => format!("{cause}: {said}"),
                };
                let error = format!("the command that gives the items failed: {said}");
                return self.decide(&Input::InputFailed {
                    step,
                    reason,
                    error,
                    stderr: end.stderr,
                });
            }
        };
        self.items_read(step, items);
    }

    fn items_read(&mut self, step: u32, items: Items) {
        failpoint::reach("items-read", 1);
        self.reading.remove(&step);
        self.decide(&match items {
            Ok(items) => Input::ItemsRead { step, items },
            Err(error) => Input::InputFailed {
                step,
                reason: Reason::Permanent,
                error,
                stderr: None,
            },
        });
    }

    fn interrupted(&mut self) {
        self.interrupts = self.interrupts.saturating_add(1);
        let here = self.job.running.len();
        let here = here.saturating_sub(self.job.accepted.len());
        self.observer.leaving(self.interrupts, here);
        if self.interrupts > 1
            && let Some(keeper) = &self.keeper
        {
            keeper.cancel_all();
        }
        if self.interrupts > 1 {
            self.end_calls();
        }
    }

    /// What is to be read of an attempt.
    fn reading_of(&self, start: u64) -> Reading {
        let Some(&(step, item)) = self.job.running.get(&start) else {
            return Reading {
                output: true,
                is_input: true,
                ..Reading::default()
            };
        };
        let active = self.job.active(step, item);
        let command = active.and_then(|active| self.job.plan().command(active.command));
        match active.zip(command) {
            Some((active, command)) => Reading {
                output: self.job.plan().wants_output(active.command),
                is_input: false,
                output_limit: command.output_limit,
            },
            None => Reading::default(),
        }
    }

    /// The program of an attempt, and where it runs.
    fn program_of(&self, start: u64) -> [String; 2] {
        let place = self.job.running.get(&start);
        let task = place.and_then(|&(step, item)| self.task(step, item).ok());
        let (program, directory) = match task.map(|task| (task.work, task.working_dir)) {
            Some((TaskWork::Run { argv }, directory)) => (argv.into_iter().next(), directory),
            _ => (None, self.job.submitted().working_dir.clone()),
        };
        let shell = || self.job.workflow().shell.clone();
        [program.unwrap_or_else(shell), directory]
    }

    /// Hears what somebody has asked of it in the store.
    pub(super) fn hear_requests(&mut self) -> Result<(), DriveError> {
        for request in self.world.store.requests(&self.claim.aggregate)? {
            let known = self.batches.iter().chain([&self.pending]);
            if known
                .into_iter()
                .any(|batch| batch.taken.contains(&request.id))
            {
                continue;
            }
            match Asked::read(&request.bytes) {
                Some(Asked::Request(asked)) => self.decide(&asked.input()),
                // Whoever handed it on has answered already. So it waits for the next attempt if there is
                // none just now.
                Some(Asked::Report(arrived)) => {
                    let waits = matches!(self.arrived(arrived), Found::Waiting);
                    if waits && !mutant::is(Mutant::TakenResultLost) {
                        continue;
                    }
                }
                None => {}
            }
            self.pending.taken.push(request.id);
        }
        Ok(())
    }
}
