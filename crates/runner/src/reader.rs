//! Reading a job to show it: its state, its projection, and the histories of requested items.
//!
//! With an index, a reader loads the state without the names and values of items, applies newer records, and
//! reads further records only on request. Without an index it reads the whole journal, and saves an index if
//! that took long.

use std::collections::{BTreeMap, BTreeSet};

use undaunted_engine::event::{Event, JobEvent, Record, RecordError, items_of};
use undaunted_engine::id::{ItemId, StepId};
use undaunted_engine::job::{Job, Plans};
use undaunted_engine::view::Projection;
use undaunted_engine::view::history::{Histories, History};
use undaunted_store::{AggregateId, Records, Store, Version};

use crate::folder::keep;
use crate::journal::{aggregate, begin, decode, not_found};
use crate::stored_job::records_after;
use crate::{JobFolder, JournalError, index_file};

mod attempts;

/// Reading fewer records takes negligible time.
const MANY: u64 = 10_000;

/// Up to this distance, skipping records is cheaper than a new read, which reads a whole row of the store.
const NEAR: u64 = 2048;

/// How many pages of items are kept in memory.
const PAGES: usize = 4;

pub struct JobReader<'s> {
    store: &'s dyn Store,
    aggregate: AggregateId,
    pub job: Job,
    pub projection: Projection,
    version: Version,
    /// The pages whose items are all loaded, by version.
    pages: BTreeSet<u64>,
}

/// The job with the plan that was in force at each record, if the plan was ever changed.
struct PlanAtRecord(Option<Job>);

impl PlanAtRecord {
    /// Must be called with all records that change the plan, in order; other records are allowed in between.
    fn at(&mut self, record: &Record) -> Option<&Job> {
        let job = self.0.as_mut()?;
        if let Event::Job(JobEvent::PolicyChanged { .. }) = &record.event {
            job.apply(record);
        }
        Some(job)
    }
}

impl<'s> JobReader<'s> {
    pub fn open(
        store: &'s dyn Store,
        folder: &JobFolder,
        job: &str,
        plans: &Plans,
    ) -> Result<Self, JournalError> {
        Self::open_indexing(store, folder, job, plans, MANY)
    }

    /// Saves an index after reading at least `many` records.
    fn open_indexing(
        store: &'s dyn Store,
        folder: &JobFolder,
        job: &str,
        plans: &Plans,
        many: u64,
    ) -> Result<Self, JournalError> {
        let aggregate = aggregate(job)?;
        let (job, projection, version, last, rest) = if let Some(saved) =
            index_file::read(&folder.index(), job)
            && let Some(rest) = records_after(store, &aggregate, saved.version, &saved.last)
            && let Some(job) = saved.job(plans)
        {
            (job, saved.projection, saved.version, saved.last, rest)
        } else {
            let mut records = store.read(&aggregate, Version::EMPTY)?;
            let (version, last) = records.next().ok_or_else(|| not_found(job))??;
            let first = decode(job, version, &last)?;
            let state = begin(job, &first, plans)?;
            let mut projection = Projection::default();
            projection.take(&state, version.0, &first);
            (state, projection, version, last, records)
        };
        let mut reader = Self { store, aggregate, job, projection, version, pages: BTreeSet::new() };
        reader.follow(rest, last, (folder, many))?;
        Ok(reader)
    }

    /// Applies records, and saves an index if there were many.
    fn follow(
        &mut self,
        records: Records<'_>,
        mut last: Vec<u8>,
        (folder, many): (&JobFolder, u64),
    ) -> Result<(), JournalError> {
        let before = self.version.0;
        for read in records {
            let (version, bytes) = read?;
            self.apply(version, &bytes)?;
            last = bytes;
        }
        if self.version.0.saturating_sub(before) >= many && index_file::is_for(&self.job) {
            let bytes = index_file::bytes(&self.job, &self.projection, self.version, &last);
            // An error, such as a full disk or a read-only store, is ignored: without an index only the next
            // reader takes longer.
            drop(keep(&folder.index(), &bytes));
        }
        Ok(())
    }

    /// Applies the records written since the last read, and returns the items they are about.
    pub fn refresh(&mut self) -> Result<BTreeSet<ItemId>, JournalError> {
        let mut items = BTreeSet::new();
        let store = self.store;
        for read in store.read(&self.aggregate, self.version)? {
            let (version, bytes) = read?;
            if let Event::Item(event) = self.apply(version, &bytes)?.event {
                items.insert(event.item());
            }
        }
        Ok(items)
    }

    fn apply(&mut self, version: Version, bytes: &[u8]) -> Result<Record, JournalError> {
        let record = decode(self.job.id(), version, bytes)?;
        self.job.apply(&record);
        self.projection.take(&self.job, version.0, &record);
        self.version = version;
        Ok(record)
    }

    /// Calls `each` with the records after a version.
    pub fn each_record(
        &self,
        after: Version,
        mut each: impl FnMut(&Job, &Record),
    ) -> Result<(), JournalError> {
        for read in self.store.read(&self.aggregate, after)? {
            let (version, bytes) = read?;
            if version > self.version {
                break;
            }
            each(&self.job, &decode(self.job.id(), version, &bytes)?);
        }
        Ok(())
    }

    pub const fn version(&self) -> Version {
        self.version
    }

    /// Loads the names and values of these items.
    pub fn load_items(&mut self, items: impl IntoIterator<Item = ItemId>) -> Result<(), JournalError> {
        let mut wanted: BTreeMap<u64, Vec<ItemId>> = BTreeMap::new();
        for item in items {
            let state = self.job.step(item.step);
            if state.is_some_and(|state| !state.items.knows(item.index))
                && let Some(page) = self.projection.index.page_of(item)
            {
                wanted.entry(page.version).or_default().push(item);
            }
        }
        for (version, items) in wanted {
            self.with_page(version, |step, first, texts| {
                for item in &items {
                    let place = item.index.saturating_sub(first);
                    let text = texts.get(usize::try_from(place).unwrap_or(usize::MAX));
                    if let Some((identity, input)) = text {
                        step.items.learn(item.index, identity, input);
                    }
                }
            })?;
        }
        Ok(())
    }

    /// As [`JobReader::learn`], for items that come roughly in the order of the input: loads the items around
    /// this one too, and forgets others.
    fn learn_around(&mut self, item: ItemId) -> Result<(), JournalError> {
        let left_out = self.job.step(item.step);
        if !left_out.is_some_and(|state| state.items.are_left_out()) {
            return Ok(());
        }
        let Some(version) = self.projection.index.page_of(item).map(|page| page.version) else {
            return Ok(());
        };
        if self.pages.contains(&version) {
            return Ok(());
        }
        if self.pages.len() >= PAGES {
            self.pages.clear();
            for step in &mut self.job.steps {
                step.items.forget();
            }
        }
        self.pages.insert(version);
        self.with_page(version, |step, first, texts| {
            for (index, (identity, input)) in (first..).zip(texts) {
                step.items.learn(index, identity, input);
            }
        })
    }

    /// Calls `each` with the step, the index of the first item, and the names and values of a page.
    fn with_page(
        &mut self,
        version: u64,
        each: impl FnOnce(&mut undaunted_engine::job::StepState, u32, &[(&str, &str)]),
    ) -> Result<(), JournalError> {
        let pages = self.projection.index.pages.iter();
        let Some(page) = pages.copied().find(|page| page.version == version) else {
            return Ok(());
        };
        let before = Version(version.saturating_sub(1));
        let read = self.store.read(&self.aggregate, before)?.next().transpose()?;
        let texts = read.as_ref().and_then(|(_, bytes)| items_of(bytes));
        let texts = texts.ok_or_else(|| JournalError::Record {
            job: self.job.id().to_owned(),
            version: Version(version),
            why: RecordError::Malformed { what: "the items that the index refers to are missing".to_owned() },
        })?;
        if let Some(step) = self.job.steps.get_mut(page.step.position()) {
            each(step, page.first, &texts);
        }
        Ok(())
    }

    /// The histories of these items, and loads their names. Items without a record have no history.
    pub fn histories(&mut self, items: BTreeSet<ItemId>) -> Result<BTreeMap<ItemId, History>, JournalError> {
        if items.is_empty() {
            return Ok(BTreeMap::new());
        }
        self.load_items(items.iter().copied())?;
        let mut versions = self.projection.index.records_of(&items);
        versions.extend(&self.projection.turns);
        versions.sort_unstable();
        // When a record was written, another plan may have been in force.
        let mut plan = self.plan_at_record()?;
        let mut histories = Histories::of(items);
        self.each_of(&versions, |record| {
            histories.take(plan.at(record).unwrap_or(&self.job), record);
        })?;
        Ok(histories.items)
    }

    fn plan_at_record(&self) -> Result<PlanAtRecord, JournalError> {
        Ok(PlanAtRecord(match self.projection.turns.as_slice() {
            [] => None,
            _ => Some(self.first()?),
        }))
    }

    /// The job as it was submitted, with the texts interned so far.
    fn first(&self) -> Result<Job, JournalError> {
        let (id, first) = (self.job.id(), Version::EMPTY);
        let read = self.store.read(&self.aggregate, first)?.next();
        let (version, bytes) = read.ok_or_else(|| not_found(id))??;
        let record = decode(id, version, &bytes)?;
        let mut job = begin(id, &record, &Plans::default())?;
        job.texts = self.job.texts.clone();
        Ok(job)
    }

    /// Reads the records with these versions, which are in order.
    fn each_of(&self, versions: &[u64], mut each: impl FnMut(&Record)) -> Result<(), JournalError> {
        let mut open: Option<(u64, Records<'_>)> = None;
        for &version in versions {
            let (at, mut records) = match open.take() {
                Some((at, records)) if version.saturating_sub(at) <= NEAR => (at, records),
                _ => {
                    let before = version.saturating_sub(1);
                    (before, self.store.read(&self.aggregate, Version(before))?)
                }
            };
            let ahead = version.saturating_sub(at).saturating_sub(1);
            let ahead = usize::try_from(ahead).unwrap_or(usize::MAX);
            if let Some(read) = records.nth(ahead) {
                let (found, bytes) = read?;
                each(&decode(self.job.id(), found, &bytes)?);
            }
            open = Some((version, records));
        }
        Ok(())
    }

    /// Finds items by what a user typed: all items with this name, else `#3` by position, else all whose
    /// names begin with it. In the last case only the first names are loaded.
    pub fn find(&mut self, typed: &str) -> Result<Vec<ItemId>, JournalError> {
        let named = self.projection.index.named(typed);
        self.load_items(named)?;
        let exact = |reader: &Self| -> Vec<ItemId> {
            reader.known().filter(|it| reader.job.identity(*it) == typed).collect()
        };
        let found = exact(self);
        if !found.is_empty() {
            return Ok(found);
        }
        if let Some(index) = typed.strip_prefix('#').and_then(|it| it.parse::<u32>().ok()) {
            let found = self.at_position(index);
            self.load_items(found)?;
            return Ok(found.into_iter().collect());
        }
        self.with_prefix(typed)
    }

    fn at_position(&self, index: u32) -> Option<ItemId> {
        let steps = || StepId::all().zip(&self.job.steps);
        let map = steps().find(|(step, _)| self.job.plan().is_map(*step));
        if let Some((step, state)) = map {
            return (index < state.items.len()).then_some(step.item(index));
        }
        let mut all = steps().flat_map(|(step, state)| {
            let count = state.items.len().max(self.job.is_unstarted_command(step).into());
            (0..count).map(move |index| step.item(index))
        });
        all.nth(usize::try_from(index).unwrap_or(usize::MAX))
    }

    /// All items whose names are loaded, and the commands of a list that have not started.
    fn known(&self) -> impl Iterator<Item = ItemId> {
        let steps = StepId::all().zip(&self.job.steps);
        steps.flat_map(|(step, state)| {
            let unstarted = self.job.is_unstarted_command(step).then_some(0);
            state.items.known().chain(unstarted).map(move |index| step.item(index))
        })
    }

    fn with_prefix(&mut self, typed: &str) -> Result<Vec<ItemId>, JournalError> {
        const LEARNED: usize = 10;
        let job = &self.job;
        let here = self.known().filter(|it| {
            let left_out = job.step(it.step).is_some_and(|step| step.items.are_left_out());
            !left_out && job.identity(*it).starts_with(typed)
        });
        let mut found: Vec<ItemId> = here.collect();
        for page in self.projection.index.pages.clone() {
            self.with_page(page.version, |step, first, texts| {
                if !step.items.are_left_out() {
                    return;
                }
                let numbered = (first..).zip(texts);
                for (index, (identity, input)) in numbered.filter(|(_, it)| it.0.starts_with(typed)) {
                    if found.len() < LEARNED {
                        step.items.learn(index, identity, input);
                    }
                    found.push(page.step.item(index));
                }
            })?;
        }
        found.sort_unstable();
        Ok(found)
    }
}

#[cfg(test)]
mod tests;
