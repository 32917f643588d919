//! A job as it is shown, with the histories of the items asked for.

use std::collections::{BTreeMap, BTreeSet};

use undaunted_engine::breaker::AdmissionControl;
use undaunted_engine::id::{CommandId, ItemId, StepId};
use undaunted_engine::job::Job;
use undaunted_engine::view::Projection;
use undaunted_engine::view::history::History;
use undaunted_runner::reader::JobReader;

use crate::exit::Refused;
use crate::jobs::Jobs;
use crate::target;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    All,
    One(ItemId, Option<CommandId>),
}

pub(crate) struct Past {
    pub(crate) job: Job,
    pub(crate) projection: Projection,
    /// Of the job, as they are now.
    pub(crate) breakers: AdmissionControl,
    pub(crate) items: BTreeMap<ItemId, History>,
}

impl Whose {
    /// Reads `JOB`, `JOB/ITEM` or `JOB/ITEM/COMMAND`.
    pub(crate) fn typed(jobs: &Jobs, typed: &str) -> Result<(String, Self), Refused> {
        let (job, rest) = target::split(typed);
        let id = jobs.find(job)?;
        let Some(rest) = rest else {
            return Ok((id, Self::All));
        };
        let job = jobs.read(&id)?;
        let (item, command) = target::item_and_command(&job, rest)?;
        Ok((id, Self::One(item, command)))
    }

    pub(crate) fn items(self, job: &Job) -> BTreeSet<ItemId> {
        match self {
            Self::All => all_items(job).collect(),
            Self::One(only, _) => [only].into(),
        }
    }

    pub(crate) fn includes_command(self, command: CommandId) -> bool {
        match self {
            Self::All | Self::One(_, None) => true,
            Self::One(_, Some(only)) => only == command,
        }
    }
}

pub(crate) fn all_items(job: &Job) -> impl Iterator<Item = ItemId> {
    let steps = StepId::all().zip(&job.steps);
    steps.flat_map(|(step, state)| (0..state.items.len()).map(move |index| step.item(index)))
}

impl Past {
    /// Reads the histories of the items that `wanted` names.
    pub(crate) fn read(
        jobs: &Jobs,
        id: &str,
        wanted: impl FnOnce(&Job) -> BTreeSet<ItemId>,
    ) -> Result<Self, Refused> {
        let folder = jobs.local.job(id);
        let mut reader = JobReader::open(&*jobs.store, &folder, id, &jobs.plans)?;
        let wanted = wanted(&reader.job);
        let items = reader.histories(wanted)?;
        Ok(Self {
            breakers: jobs.breakers_of(&reader.job)?,
            items,
            job: reader.job,
            projection: reader.projection,
        })
    }
}
