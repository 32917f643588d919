//! The results of a map, for what comes after it.
//!
//! Read from the journal when something refers to them: while a map runs nobody needs them, and a
//! million of them would fill the memory.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use undaunted_engine::capture;
use undaunted_engine::event::{Event, ItemEvent};
use undaunted_engine::id::{CommandId, StepId};
use undaunted_engine::job::{Item, Job, Settled, StepStage, StepState};
use undaunted_store::{Store, Version};

use super::error::DriveError;
use super::running::Drive;
use crate::journal::{self, JournalError};

/// What became of an item of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemResult {
    /// What the item is called.
    pub item: String,
    /// `succeeded`, `dead`, `skipped` or `pending`.
    pub status: &'static str,
    /// What its last command gave.
    pub output: Option<String>,
    /// What was said about its last failure, if it did not succeed.
    pub error: Option<String>,
    /// The last command that gave something.
    command: CommandId,
}

/// The results of the map of a job, in the order of its input.
pub fn read_results(store: &dyn Store, job: &Job) -> Result<Vec<ItemResult>, JournalError> {
    let Some((map, state)) = map_of(job) else {
        return Ok(Vec::new());
    };
    let mut outputs: BTreeMap<u32, (CommandId, String)> = BTreeMap::new();
    let mut errors: BTreeMap<u32, String> = BTreeMap::new();
    let aggregate = journal::aggregate(job.id())?;
    for read in store.read(&aggregate, Version::EMPTY)? {
        let (version, bytes) = read?;
        let record = journal::decode(job.id(), version, &bytes)?;
        match record.event {
            Event::Item(ItemEvent::AttemptSucceeded(done)) if done.of.step == map => {
                if let Some(output) = done.output {
                    let given = (done.of.command, output);
                    outputs.insert(done.of.index, given);
                }
            }
            Event::Item(ItemEvent::AttemptFailed(failed)) if failed.of.step == map => {
                let error = failed.error.as_ref().map(|error| job.texts.read(error));
                errors.insert(failed.of.index, error.unwrap_or_default().to_owned());
            }
            Event::Job(_) | Event::Step(_) | Event::Item(_) | Event::Breaker(_) => {}
        }
    }
    // What the step was complete without is not among its results, also if it came since.
    let counted = |item: u32, found: Item<'_>| {
        let there =
            matches!(found, Item::Settled(settled) if !matches!(settled, Settled::Missing(_)));
        state.reached.is_none() || (there && !state.late.contains(&item))
    };
    let items = state.items.iter();
    let items = items.filter(|(item, found)| counted(*item, *found));
    let results = items.map(|(item, found)| {
        let status = match found {
            Item::Settled(Settled::Succeeded) => "succeeded",
            Item::Settled(Settled::Dead(_)) => "dead",
            Item::Settled(Settled::Skipped(_) | Settled::Missing(_)) => "skipped",
            Item::Pending | Item::Active(_) => "pending",
        };
        let (command, output) = outputs.remove(&item).unzip();
        ItemResult {
            item: state.items.identity(item).to_owned(),
            status,
            output,
            error: errors.remove(&item).filter(|_| status != "succeeded"),
            command: command.unwrap_or_default(),
        }
    });
    Ok(results.collect())
}

fn map_of(job: &Job) -> Option<(StepId, &StepState)> {
    let mut steps = StepId::all().zip(&job.steps);
    steps.find(|(step, _)| job.plan().is_map(*step))
}

impl Drive<'_> {
    /// Whether the commands of a step may refer to results that are not there yet.
    pub(super) fn needs_results(&self, step: StepId) -> bool {
        let plan = self.job.plan();
        self.starter.results.is_none()
            && plan.wants_results()
            && !plan.is_map(step)
            && map_of(&self.job).is_some_and(|(_, map)| map.stage == StepStage::Completed)
    }

    /// Reads the results, and writes the file that holds them.
    pub(super) fn read_results(&mut self) -> Result<(), DriveError> {
        let plan = self.job.plan();
        let results = read_results(&*self.context.world.store, &self.job)?;
        let results = results.into_iter().map(|result| {
            let command = plan.command(result.command);
            let format = command.and_then(|command| command.capture.as_ref());
            let format = format.map(|capture| capture.format).unwrap_or_default();
            let output = result.output.as_deref();
            let output = output.and_then(|output| capture::read(output, format).ok());
            json!({
                "item": result.item,
                "status": result.status,
                "output": output,
            })
        });
        let results: Value = results.collect();
        let text = results.to_string();
        let written = self
            .context
            .world
            .machine
            .keep(&self.context.folder.results(), text.as_bytes());
        written.map_err(|source| DriveError::File {
            path: self.context.folder.results(),
            source,
        })?;
        self.starter.results = Some(results);
        Ok(())
    }
}
