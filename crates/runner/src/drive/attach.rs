//! Reaching the keeper, and finding out what became of what it was told.
//!
//! The same after a crash of the engine and after the death of a keeper: every attempt that was
//! recorded as started has a fate, and each fate has one consequence.

use std::collections::BTreeSet;

use undaunted_engine::effect::{self, Effect};
use undaunted_engine::input::AttemptEnd;
use undaunted_engine::job::StepStage;
use undaunted_engine::workflow::Action;
use undaunted_policy::Cause;
use undaunted_policy::mutant::{self, Mutant};
use undaunted_store::Version;

use super::error::DriveError;
use super::news::{News, When};
use super::running::Drive;
use crate::clock::wall;
use crate::executor::vanished;
use crate::journal;
use crate::spool::{Fate, Recovered, Vanished};

impl Drive<'_> {
    /// Goes on with what was under way and needs no keeper.
    pub(super) fn recover(&mut self) -> Result<(), DriveError> {
        for effect in effect::wanted(&self.job) {
            match effect {
                // Whoever began it may have died before the flow was there.
                Effect::Begin { start, .. } if self.runs_flow(start) => self.act(effect)?,
                // Nobody knows what became of a request whose answer nobody waited for.
                Effect::Begin { start, .. } if self.job.accepted.contains_key(&start) => {}
                Effect::Begin { start, .. } if self.calls_out(start) => {
                    self.attempt_ended(AttemptEnd {
                        start,
                        failure: Some(Cause::Interrupted),
                        error: "whoever waited for its answer died before it came".to_owned(),
                        at_once: self.calls_step(start),
                        ..AttemptEnd::default()
                    });
                }
                // Their fates were looked at, or their records are being written.
                Effect::Begin { start, .. } if !self.writes(start) => {}
                Effect::ReadInput { start: Some(_), .. } => {}
                effect => self.act(effect)?,
            }
        }
        Ok(())
    }

    /// Whether an attempt writes a file, which needs no keeper.
    fn writes(&self, start: u64) -> bool {
        matches!(self.action(start), Some(Action::WriteFile(_)))
    }

    /// Whether an attempt sends a request or calls a function, which needs no keeper either.
    fn calls_out(&self, start: u64) -> bool {
        matches!(
            self.action(start),
            Some(Action::Http(_) | Action::Step(_) | Action::Function(_))
        )
    }

    /// Whether an attempt calls a step of a flow: what ran at a crash is sent again at once.
    fn calls_step(&self, start: u64) -> bool {
        matches!(self.action(start), Some(Action::Step(_)))
    }

    /// Whether an attempt is a flow of its own.
    fn runs_flow(&self, start: u64) -> bool {
        matches!(self.action(start), Some(Action::SubFlow(_)))
    }

    fn action(&self, start: u64) -> Option<&Action> {
        let &(step, item) = self.job.running.get(&start)?;
        let active = self.job.active(step, item)?;
        let command = self.job.plan().command(active.command)?;
        Some(&command.action)
    }

    /// The starts that a keeper was told of, or was about to be.
    pub(super) fn started(&self) -> BTreeSet<u64> {
        let attempts = self.job.running.keys().copied();
        let elsewhere =
            |start: u64| self.writes(start) || self.calls_out(start) || self.runs_flow(start);
        let attempts = attempts.filter(|start| !elsewhere(*start));
        let inputs = self.job.steps.iter().filter_map(|state| match state.stage {
            StepStage::Reading(start) => start,
            _ => None,
        });
        attempts.chain(inputs).collect()
    }

    /// Connects to the keeper or starts one, and draws the consequences of what it knows.
    pub(super) fn attach(&mut self) -> Result<(), DriveError> {
        let behind = self.last_place()?;
        let tell = self.tell.clone();
        let tell = move |event| tell.send(News::Keeper(event)).is_ok();
        let machine = &self.world.machine;
        let (keeper, recovered) = machine.keeper(&self.folder, behind, Box::new(tell))?;
        self.keeper = Some(keeper);
        if recovered.uncertain {
            self.end_leftovers()?;
        }
        for start in self.told.clone() {
            self.fate(start, &recovered)?;
        }
        self.forget_what_is_settled(&recovered);
        self.is_settling = true;
        self.when_written(When::Trust);
        self.hand_over();
        Ok(())
    }

    /// What is on record of outputs is places in the spool. If that was removed, as by archiving the
    /// job, the next one must not give the same places to others: the last one that is on record.
    fn last_place(&self) -> Result<Option<u32>, DriveError> {
        if self.is_new || self.world.machine.has_spool(&self.folder) {
            return Ok(None);
        }
        let mut last = None;
        for read in self
            .world
            .store
            .read(&self.claim.aggregate, Version::EMPTY)?
        {
            let (version, bytes) = read?;
            let record = journal::decode(self.job.id(), version, &bytes)?;
            let places = record.event.outputs().into_iter().flatten();
            last = last.max(places.map(|kept| kept.segment).max());
        }
        Ok(last)
    }

    /// The spool knows nothing about what runs: whatever holds the token of a command that was started
    /// is ended, so that no second attempt runs beside it.
    fn end_leftovers(&self) -> Result<(), DriveError> {
        let tokens = self.told.iter().filter_map(|start| self.token_of(*start));
        let tokens: BTreeSet<String> = tokens.collect();
        if !tokens.is_empty() {
            let grace = self.world.grace;
            self.world.machine.end_holders(&tokens, grace)?;
        }
        Ok(())
    }

    fn fate(&mut self, start: u64, recovered: &Recovered) -> Result<(), DriveError> {
        let fate = match recovered.fate(start) {
            Fate::Vanished(_) if mutant::is(Mutant::SecondStart) => Fate::NeverBegan,
            Fate::Running(_) if mutant::is(Mutant::TakeoverForgetsRunning) => Fate::Vanished(None),
            fate => fate,
        };
        match fate {
            Fate::NeverBegan => {
                if let Some(&(step, item)) = self.job.running.get(&start) {
                    return self.begin_attempt(start, step, item);
                }
                for effect in effect::reading(&self.job) {
                    if let Effect::ReadInput { step, start: of } = effect
                        && of == Some(start)
                    {
                        // Whoever was told of it has died before it could begin.
                        if !mutant::is(Mutant::InputNotBegunAgain) {
                            self.reading.remove(&step);
                        }
                        self.act(effect)?;
                    }
                }
            }
            // Its end will be told.
            Fate::Running(_) => {}
            Fate::Exited(exited) => self.exited(&exited),
            Fate::Vanished(found) => {
                if let Some(keeper) = &self.keeper {
                    let now = self.now();
                    let mut end = vanished(start, found.as_ref(), &**keeper, &self.secrets, now);
                    if found.is_some_and(|found| self.was_overdue(start, &found)) {
                        end.failure = Some(Cause::Timeout);
                    }
                    self.attempt_ended(end);
                }
            }
        }
        Ok(())
    }

    /// Whether a command was found alive after its time, because nobody was there to end it.
    fn was_overdue(&self, start: u64, found: &Vanished) -> bool {
        let place = self.job.running.get(&start);
        let active = place.and_then(|&(step, item)| self.job.active(step, item));
        let command = active.and_then(|active| self.job.plan().command(active.command));
        let timeout = command.and_then(|command| command.timeout);
        let ran = self.now().since(wall(found.began));
        found.ended > 0 && timeout.is_some_and(|timeout| ran >= timeout)
    }

    /// The spool may know attempts whose end is on record: the last engine died before it said so.
    fn forget_what_is_settled(&self, recovered: &Recovered) {
        let Some(keeper) = &self.keeper else { return };
        for (start, _) in recovered.known() {
            let batches = self.batches.iter();
            let batches = batches.filter(|_| !mutant::is(Mutant::ForgetsWhileWriting));
            let unwritten = batches.chain([&self.pending]);
            let ending = unwritten.into_iter().any(|it| it.ended.contains(&start));
            if !self.told.contains(&start) && !ending {
                keeper.forget(start);
            }
        }
    }
}
