//! The results of a map, for what comes after it.
//!
//! Read from the journal when something refers to them: while a map runs nobody needs them, and a
//! million of them would fill the memory.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use undaunted_engine::capture;
use undaunted_engine::event::Event;
use undaunted_engine::job::{Item, Settled, StepStage};

use super::error::DriveError;
use super::running::Drive;
use crate::journal;

impl Drive<'_> {
    /// Whether the commands of a step may refer to results that are not there yet.
    pub(super) fn needs_results(&self, step: u32) -> bool {
        let plan = self.job.plan();
        let complete = |map: u32| {
            self.job
                .step(map)
                .is_some_and(|state| state.stage == StepStage::Completed)
        };
        self.results.is_none()
            && plan.wants_results()
            && !plan.is_map(step)
            && self.map_step().is_some_and(complete)
    }

    fn map_step(&self) -> Option<u32> {
        let mut steps = (0_u32..).zip(&self.job.steps);
        let found = steps.find(|(step, _)| self.job.plan().is_map(*step));
        found.map(|(step, _)| step)
    }

    /// Reads the results, and writes the file that holds them.
    pub(super) fn read_results(&mut self) -> Result<(), DriveError> {
        let Some(map) = self.map_step() else {
            return Ok(());
        };
        let mut outputs: BTreeMap<u32, Value> = BTreeMap::new();
        journal::replay(&*self.world.store, self.job.id(), |job, _, record| {
            if let Event::AttemptSucceeded(done) = &record.event
                && done.subject.step == map
                && let Some(output) = &done.output
            {
                let command = job.plan().command(done.subject.command);
                let format = command.and_then(|command| command.capture.as_ref());
                let format = format.map(|capture| capture.format).unwrap_or_default();
                let value = capture::read(output, format).unwrap_or_default();
                outputs.insert(done.subject.item, value);
            }
        })?;
        let Some(state) = self.job.step(map) else {
            return Ok(());
        };
        // What the step was complete without is not among its results, also if it came since.
        let counted = |item: u32, found: &Item| {
            let there =
                matches!(found, Item::Settled(settled) if !matches!(settled, Settled::Missing(_)));
            state.reached.is_none() || (there && !state.late.contains(&item))
        };
        let items = state.items.iter();
        let items = items.filter(|(item, found)| counted(*item, found));
        let results = items.map(|(item, found)| {
            let status = match found {
                Item::Settled(Settled::Succeeded) => "succeeded",
                Item::Settled(Settled::Dead(_)) => "dead",
                Item::Settled(Settled::Skipped(_) | Settled::Missing(_)) => "skipped",
                Item::Pending | Item::Active(_) => "pending",
            };
            json!({
                "item": state.items.identity(item),
                "status": status,
                "output": outputs.remove(&item),
            })
        });
        let results: Value = results.collect();
        let text = results.to_string();
        let written = self
            .world
            .machine
            .keep(&self.folder.results(), text.as_bytes());
        written.map_err(|source| DriveError::File {
            path: self.folder.results(),
            source,
        })?;
        self.results = Some(results);
        Ok(())
    }
}
