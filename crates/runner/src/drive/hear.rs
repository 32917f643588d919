//! What the world says, and what follows from it.

use undaunted_engine::decide::cause_in_words;
use undaunted_engine::effect;
use undaunted_engine::event::Event as Fact;
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::StepStage;
use undaunted_engine::task::TaskWork;
use undaunted_policy::{Cause, Reason};

use super::error::DriveError;
use super::main_loop::{Batch, Drive};
use super::news::News;
use crate::breakers::was_overtaken;
use crate::executor::{Items, Reading, ended, items_of};
use crate::failpoint;
use crate::keeper::{Event, Refusal};
use crate::request::Request;
use crate::spool::{End, Exited};

impl Drive<'_> {
    /// Waits for news, and hears all there is.
    pub(super) fn listen(&mut self) -> Result<(), DriveError> {
        if self.draw_consequences()? {
            return Ok(());
        }
        let patience = self.patience();
        let first = self.set_aside.pop_front();
        let first = first.or_else(|| self.news.recv_timeout(patience).ok());
        let Some(first) = first else {
            self.decide(&Input::Woke);
            return Ok(());
        };
        self.hear(first)?;
        while let Some(next) = self.next_news() {
            self.hear(next)?;
        }
        Ok(())
    }

    fn next_news(&mut self) -> Option<News> {
        let next = self.set_aside.pop_front();
        next.or_else(|| self.news.try_recv().ok())
    }

    /// Acts upon what was written while something else was waited for. Whether there was any.
    fn draw_consequences(&mut self) -> Result<bool, DriveError> {
        let mut any = false;
        while let Some(batch) = self.on_disk.pop_front() {
            self.stored(&batch)?;
            any = true;
        }
        Ok(any)
    }

    pub(super) fn hear(&mut self, news: News) -> Result<(), DriveError> {
        match news {
            News::Stored(Ok(())) => {
                if let Some(batch) = self.batches.pop_front() {
                    self.stored(&batch)?;
                }
            }
            News::Stored(Err(error)) if was_overtaken(&error) => self.overtaken()?,
            News::Stored(Err(error)) => return Err(error.into()),
            News::Keeper(event) => self.hear_keeper(event)?,
            News::Ended(end) => self.attempt_ended(&end),
            News::Accepted(start) => {
                self.calls.forget(start);
                self.decide(&Input::Accepted { start });
            }
            News::Reported(report) => self.reported(report)?,
            News::Items { step, items } => self.items_read(step, items),
            News::Interrupt => self.interrupted()?,
            News::Cancel => self.decide(&Input::Cancel),
        }
        Ok(())
    }

    /// Records are on the disk: now they may have consequences.
    fn stored(&mut self, batch: &Batch) -> Result<(), DriveError> {
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
                drop(keeper.forget(*start));
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
                    self.observer.began(running.id, keeper.spool().slot(slot));
                }
            }
            Event::Exited(exited) => self.exited(&exited),
            Event::Refused { id: Some(id), why } => match why {
                // It runs, or has run: its end comes or has come.
                Refusal::Known => {}
                Refusal::Cancelled if !self.is_unwanted(id) => {
                    self.unbegun.insert(id);
                }
                Refusal::Cancelled => self.attempt_ended(&AttemptEnd {
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
        let end = ended(exited, keeper.spool(), &self.secrets, reading, &what);
        self.attempt_ended(&end);
    }

    pub(super) fn attempt_ended(&mut self, end: &AttemptEnd) {
        self.pending.ended.push(end.start);
        self.told.remove(&end.start);
        self.calls.forget(end.start);
        if let Some(step) = self.input_of(end.start) {
            return self.input_ended(step, end);
        }
        self.decide(&Input::Ended(Box::new(end.clone())));
        if self.pending.records.is_empty() {
            // It was known already, so nothing is written and nothing has to be waited for.
            if let (Some(keeper), Some(start)) = (&self.keeper, self.pending.ended.pop()) {
                drop(keeper.forget(start));
            }
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

    fn interrupted(&mut self) -> Result<(), DriveError> {
        self.interrupts = self.interrupts.saturating_add(1);
        let here = self.job.running.len();
        let here = here.saturating_sub(self.job.accepted.len());
        self.observer.leaving(self.interrupts, here);
        if self.interrupts > 1
            && let Some(keeper) = &self.keeper
        {
            keeper.cancel_all()?;
        }
        if self.interrupts > 1 {
            self.end_calls();
        }
        Ok(())
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

    /// Looks whether somebody asked for something.
    pub(super) fn look(&mut self) -> Result<(), DriveError> {
        if !self.may_look() {
            return Ok(());
        }
        self.look_at_probes()?;
        let pulse = self.world.store.pulse()?;
        // While this job has something to say about them itself, a conflict tells of others.
        if pulse != self.breakers_pulse && self.look_at_breakers()? {
            self.breakers_pulse = pulse;
        }
        if pulse == self.pulse {
            return Ok(());
        }
        self.pulse = pulse;
        for request in self.world.store.requests(&self.claim.aggregate)? {
            let known = self.batches.iter().chain([&self.pending]);
            if known
                .into_iter()
                .any(|batch| batch.taken.contains(&request.id))
            {
                continue;
            }
            if let Some(asked) = Request::read(&request.bytes) {
                self.decide(&asked.input());
            }
            self.pending.taken.push(request.id);
        }
        Ok(())
    }
}
