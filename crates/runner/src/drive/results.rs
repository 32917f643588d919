//! The results of a map, for the steps after it.
//!
//! Read from the journal when something refers to them: while a map runs they are not needed, and a
//! million of them would fill the memory.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};
use undaunted_engine::capture;
use undaunted_engine::event::{Event, ItemEvent, StoredText};
use undaunted_engine::id::{CommandId, StepId};
use undaunted_engine::job::{ItemState, Job, SettledItem, StepStage, StepState};
use undaunted_store::{Store, Version};

use super::{DriveError, JobDriver, JobMessage};
use crate::{JournalError, journal};

/// The result of an item of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemResult {
    /// The name of the item.
    pub item: String,
    /// Whether the item succeeded.
    pub status: ResultStatus,
    /// The output of its last command.
    pub output: Option<String>,
    /// The error of its last failed attempt, unless the item succeeded.
    pub error: Option<String>,
    command: CommandId,
}

/// The status of an item of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultStatus {
    /// The item has not ended.
    Pending,
    /// All commands of the item succeeded.
    Succeeded,
    /// The item is a dead letter.
    Dead,
    /// The item was skipped, or its step was complete without it.
    Skipped,
}

impl ResultStatus {
    /// The word for this status in `${map.results}`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Succeeded => "succeeded",
            Self::Dead => "dead",
            Self::Skipped => "skipped",
        }
    }
}

impl fmt::Display for ResultStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The outputs and errors of the items of a map, by index, as the journal has them.
#[derive(Debug, Default)]
pub(super) struct MapOutputs {
    outputs: BTreeMap<u32, (CommandId, String)>,
    errors: BTreeMap<u32, Option<StoredText>>,
}

/// Reads the results of all items from the journal, in the order of the map's input.
pub fn read_results(store: &dyn Store, job: &Job) -> Result<Vec<ItemResult>, JournalError> {
    let outputs = match map_of(job) {
        Some((map, _)) => read_outputs(store, job.id(), map)?,
        None => MapOutputs::default(),
    };
    Ok(results(job, outputs))
}

fn read_outputs(store: &dyn Store, job: &str, map: StepId) -> Result<MapOutputs, JournalError> {
    let MapOutputs { mut outputs, mut errors } = MapOutputs::default();
    let aggregate = journal::aggregate(job)?;
    for read in store.read(&aggregate, Version::EMPTY)? {
        let (version, bytes) = read?;
        let record = journal::decode(job, version, &bytes)?;
        match record.event {
            Event::Item(ItemEvent::AttemptSucceeded(done)) if done.of.step == map => {
                if let Some(output) = done.output {
                    let given = (done.of.command, output);
                    outputs.insert(done.of.index, given);
                }
            }
            Event::Item(ItemEvent::AttemptFailed(failed)) if failed.of.step == map => {
                errors.insert(failed.of.index, failed.error);
            }
            Event::Job(_) | Event::Step(_) | Event::Item(_) | Event::Breaker(_) => {}
        }
    }
    Ok(MapOutputs { outputs, errors })
}

fn results(job: &Job, mut read: MapOutputs) -> Vec<ItemResult> {
    let Some((_, state)) = map_of(job) else {
        return Vec::new();
    };
    // A step's results do not include items it was complete without, unless they came since and count.
    let counted = |found: ItemState<'_>| {
        let there =
            matches!(found, ItemState::Settled(settled) if !matches!(settled, SettledItem::Missing(_)));
        state.reached.is_none() || there
    };
    let items = state.items.iter().filter(|(_, found)| counted(*found));
    let results = items.map(|(item, found)| {
        let status = match found {
            ItemState::Settled(SettledItem::Succeeded) => ResultStatus::Succeeded,
            ItemState::Settled(SettledItem::Dead(_)) => ResultStatus::Dead,
            ItemState::Settled(SettledItem::Skipped(_) | SettledItem::Missing(_)) => ResultStatus::Skipped,
            ItemState::Pending | ItemState::Active(_) => ResultStatus::Pending,
        };
        let (command, output) = read.outputs.remove(&item).unzip();
        let error = read.errors.remove(&item).filter(|_| status != ResultStatus::Succeeded);
        ItemResult {
            item: state.items.identity(item).to_owned(),
            status,
            output,
            error: error.map(|error| error.as_ref().map_or("", |it| job.texts.read(it)).to_owned()),
            command: command.unwrap_or_default(),
        }
    });
    results.collect()
}

fn map_of(job: &Job) -> Option<(StepId, &StepState)> {
    let mut steps = StepId::all().zip(&job.steps);
    steps.find(|(step, _)| job.plan().is_map(*step))
}

impl JobDriver<'_> {
    /// Whether the commands of a step may refer to results that are not read yet.
    pub(super) fn needs_results(&self, step: StepId) -> bool {
        let plan = self.job.plan();
        self.starter.results.is_none()
            && plan.wants_results()
            && !plan.is_map(step)
            && map_of(&self.job).is_some_and(|(_, map)| map.stage == StepStage::Completed)
    }

    /// Whether a start has to wait for results of the map, which are read once everything is written.
    pub(super) fn awaits_results(&mut self, step: StepId) -> bool {
        let awaits = self.needs_results(step);
        if awaits && self.journal.is_written() {
            self.read_outputs();
        }
        awaits
    }

    /// Starts to read the outputs of the map outside the loop, unless they are being read already.
    pub(super) fn read_outputs(&mut self) {
        let Some((map, _)) = map_of(&self.job) else {
            return;
        };
        if std::mem::replace(&mut self.starter.is_reading, true) {
            return;
        }
        let notifier = self.context.notifier.clone();
        let store = Arc::clone(&self.context.services.store);
        let job = self.job.shared_id();
        self.context.services.machine.run_in_background(Box::new(move || {
            notifier.send_message(JobMessage::Outputs(read_outputs(&*store, &job, map)));
        }));
    }

    /// The outputs of the map were read: begins the attempts that waited for them.
    pub(super) fn handle_outputs(
        &mut self,
        read: Result<MapOutputs, JournalError>,
    ) -> Result<(), DriveError> {
        // An answer to an earlier run of the job in this loop is not taken.
        if !std::mem::replace(&mut self.starter.is_reading, false) {
            return Ok(());
        }
        if std::mem::replace(&mut self.starter.is_outdated, false) {
            self.read_outputs();
            return Ok(());
        }
        self.keep_results(read?)?;
        for (start, item) in std::mem::take(&mut self.starter.awaiting_results) {
            self.begin_attempt(start, item)?;
        }
        Ok(())
    }

    fn keep_results(&mut self, read: MapOutputs) -> Result<(), DriveError> {
        let plan = self.job.plan();
        let results = results(&self.job, read).into_iter().map(|result| {
            let command = plan.command(result.command);
            let format = command.and_then(|command| command.capture.as_ref());
            let format = format.map(|capture| capture.format).unwrap_or_default();
            let output = result.output.as_deref();
            let output = output.and_then(|output| capture::read(output, format).ok());
            json!({
                "item": result.item,
                "status": result.status.word(),
                "output": output,
            })
        });
        let results: Value = results.collect();
        let path = self.context.folder.results();
        let machine = &self.context.services.machine;
        let written = machine.write_private(&path, results.to_string().as_bytes());
        written.map_err(|source| DriveError::File { path, source })?;
        self.starter.results = Some(results);
        Ok(())
    }
}
