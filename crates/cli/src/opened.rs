//! A job opened for reading: its targets, and the views made from it.
//!
//! An item is named by its identity, a unique prefix of it, or its index in the input from 0 (`#3`). Names may
//! contain slashes: everything after the job is tried as an item first.

use std::collections::{BTreeMap, BTreeSet};

use undaunted_engine::breaker::AdmissionControl;
use undaunted_engine::id::{CommandId, ItemId, StepId};
use undaunted_engine::job::Job;
use undaunted_engine::view::history::History;
use undaunted_engine::view::{
    BudgetView, ItemView, JobExplanation, JobView, Projection, ResumesView, ViewContext, worth_drawing,
};
use undaunted_policy::Timestamp;
use undaunted_runner::clock::Clock;
use undaunted_runner::reader::JobReader;

use crate::screen::plain;
use crate::{CommandError, Jobs, Result};

pub(crate) struct OpenedJob<'j> {
    pub(crate) reader: JobReader<'j>,
    breakers: AdmissionControl,
    owner: Option<u32>,
    seen: Option<Timestamp>,
    now: Timestamp,
}

impl<'j> OpenedJob<'j> {
    pub(crate) fn open(jobs: &'j Jobs, id: &str) -> Result<Self> {
        let folder = jobs.local.job(id);
        // The owner is read first, so that a job that ends in the meantime is shown as ended.
        let owner = jobs.owner(id)?;
        let reader = JobReader::open(&*jobs.store, &folder, id, &jobs.plans)?;
        Ok(Self {
            breakers: jobs.breakers_of(&reader.job)?,
            reader,
            owner: owner.map(|owner| owner.pid),
            seen: folder.seen_alive(),
            now: Clock::set().now(),
        })
    }

    pub(crate) fn job(&self) -> &Job {
        &self.reader.job
    }

    pub(crate) const fn breakers(&self) -> &AdmissionControl {
        &self.breakers
    }

    pub(crate) const fn now(&self) -> Timestamp {
        self.now
    }

    pub(crate) fn items(&self) -> impl Iterator<Item = ItemId> {
        let steps = StepId::all().zip(&self.reader.job.steps);
        steps.flat_map(|(step, state)| (0..state.items.len()).map(move |index| step.item(index)))
    }

    fn context(&self) -> ViewContext<'_> {
        ViewContext {
            job: &self.reader.job,
            projection: &self.reader.projection,
            breakers: &self.breakers,
            owner: self.owner,
            seen: self.seen,
            now: self.now,
        }
    }

    fn learn(&mut self, named: fn(&Job, &Projection) -> BTreeSet<ItemId>) -> Result<()> {
        // Which item probes first may depend on inputs that the first pass reads.
        for _ in 0..2 {
            let items = named(&self.reader.job, &self.reader.projection);
            self.reader.load_items(items)?;
        }
        Ok(())
    }

    pub(crate) fn histories(
        &mut self,
        items: impl IntoIterator<Item = ItemId>,
    ) -> Result<BTreeMap<ItemId, History>> {
        Ok(self.reader.histories(items.into_iter().collect())?)
    }

    pub(crate) fn view(&mut self) -> Result<JobView> {
        self.learn(JobView::items)?;
        let drawn = worth_drawing(&self.reader.job);
        let histories = self.histories(drawn)?;
        Ok(JobView::of(&self.context(), &histories))
    }

    pub(crate) fn explanation(&mut self) -> Result<JobExplanation> {
        self.learn(JobExplanation::items)?;
        Ok(JobExplanation::of(&self.context()))
    }

    pub(crate) fn resumes(&self) -> ResumesView {
        ResumesView::of(&self.context())
    }

    pub(crate) fn budget(&mut self) -> Result<BudgetView> {
        let charged: Vec<ItemId> = self.reader.projection.charged.keys().copied().collect();
        self.reader.load_items(charged)?;
        Ok(BudgetView::of(&self.context()))
    }

    pub(crate) fn item(&mut self, item: ItemId, command: Option<CommandId>) -> Result<ItemView> {
        self.learn(ItemView::items)?;
        let mut histories = self.histories([item])?;
        let history = histories.remove(&item).unwrap_or_default();
        Ok(ItemView::of(&self.context(), item, command, &history))
    }
}

/// A target: `JOB`, `JOB/ITEM` or `JOB/ITEM/COMMAND`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobTarget {
    Job,
    Item(ItemId, Option<CommandId>),
}

impl JobTarget {
    pub(crate) fn open<'j>(jobs: &'j Jobs, typed: &str) -> Result<(OpenedJob<'j>, Self)> {
        let (job, rest) = split(typed);
        let id = jobs.find(job)?;
        let mut opened = OpenedJob::open(jobs, &id)?;
        let Some(rest) = rest else {
            return Ok((opened, Self::Job));
        };
        let (item, command) = item_and_command(&mut opened.reader, rest)?;
        Ok((opened, Self::Item(item, command)))
    }

    pub(crate) fn includes_command(self, command: CommandId) -> bool {
        match self {
            Self::Job | Self::Item(_, None) => true,
            Self::Item(_, Some(only)) => only == command,
        }
    }
}

/// Splits a target into the job and the rest.
pub(crate) fn split(typed: &str) -> (&str, Option<&str>) {
    match typed.split_once('/') {
        Some((job, rest)) => (job, Some(rest)),
        None => (typed, None),
    }
}

/// Finds an item, and loads its name and value into the job.
pub(crate) fn find_item(reader: &mut JobReader<'_>, typed: &str) -> Result<ItemId> {
    // Every name begins with an empty text: an unset variable of a script would select whatever is there.
    if typed.is_empty() {
        return Err(CommandError::Usage(format!(
            "the name of the item is empty; `undaunted attempts {}` lists items",
            reader.job.id()
        )));
    }
    let found = reader.find(typed)?;
    let job = &reader.job;
    match found.as_slice() {
        [only] => Ok(*only),
        [] => {
            Err(CommandError::not_found("no_item", format!("item `{typed}` not found in job {}", job.id())))
        }
        several => {
            let names: Vec<String> = several.iter().take(5).map(|it| plain(job.identity(*it))).collect();
            Err(CommandError::Usage(format!(
                "`{}` matches {} items: {}{}",
                plain(typed),
                several.len(),
                names.join(", "),
                if several.len() > names.len() { ", …" } else { "" }
            )))
        }
    }
}

/// Finds an item and, if one was typed, its command.
fn item_and_command(reader: &mut JobReader<'_>, typed: &str) -> Result<(ItemId, Option<CommandId>)> {
    let whole = find_item(reader, typed);
    let Some((before, last)) = typed.rsplit_once('/') else {
        return Ok((whole?, None));
    };
    let inner = find_item(reader, before);
    let job = &reader.job;
    match (whole, inner) {
        (Ok(found), _) => Ok((found, None)),
        (Err(_), Ok(found)) => match command(job, last) {
            Some(command) => Ok((found, Some(command))),
            None => Err(CommandError::not_found(
                "no_command",
                format!("command `{last}` not found in job {}", job.id()),
            )),
        },
        (Err(refused), Err(_)) => Err(refused),
    }
}

fn command(job: &Job, id: &str) -> Option<CommandId> {
    let mut commands = job.plan().numbered();
    commands.find_map(|(number, command)| (command.id == id).then_some(number))
}
