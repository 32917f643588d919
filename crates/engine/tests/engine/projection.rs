//! The projection of a job is the same whether it was folded record by record, decision by decision, from a saved
//! projection, or through the index.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use undaunted_engine::event::{Event, JobEvent, Record, StepEvent, items_of};
use undaunted_engine::id::{ItemId, StepId};
use undaunted_engine::job::{Job, Plans};
use undaunted_engine::view::Projection;
use undaunted_engine::view::history::Histories;

use crate::fixture::{JobWalk, OwnerAction, TestedJob, act, digest, owner_action, workflow};

/// A journal, and its length after every decision.
struct HistoryJob {
    records: Vec<Record>,
    commits: Vec<usize>,
}

impl HistoryJob {
    fn of(text: &str, seed: u64, actions: &[OwnerAction]) -> Self {
        let mut walk = JobWalk { test: TestedJob::seeded(text, seed) };
        for action in actions {
            act(&mut walk, action);
        }
        let bytes = walk.test.journal.iter();
        Self { records: bytes.map(|it| Record::decode(it).unwrap()).collect(), commits: walk.test.commits }
    }

    fn numbered(&self) -> impl Iterator<Item = (u64, &Record)> {
        (1_u64..).zip(&self.records)
    }

    /// Calls `each` with the job and its projection after every record.
    fn fold(&self, mut shown: Projection, mut each: impl FnMut(u64, &Job, &Projection)) -> Job {
        let mut job = Job::begin(&self.records[0]).unwrap();
        for (version, record) in self.numbered() {
            if version > 1 {
                job.apply(record);
            }
            shown.take(&job, version, record);
            each(version, &job, &shown);
        }
        job
    }

    fn follow(&self, mut job: Job, mut shown: Projection, after: u64) -> (Job, Projection) {
        for (version, record) in self.numbered().filter(|(it, _)| *it > after) {
            job.apply(record);
            shown.take(&job, version, record);
        }
        (job, shown)
    }
}

fn restored(shown: &Projection) -> Projection {
    let (names, records) = (shown.index.names.0.clone(), shown.index.records.0.clone());
    Projection::restore(&shown.save(), names, records).unwrap()
}

/// Has a job learn the names and values of all its items from their records.
fn learn_all(job: &mut Job, shown: &Projection, journal: &HistoryJob) {
    for page in &shown.index.pages {
        let place = usize::try_from(page.version - 1).unwrap();
        let bytes = journal.records[place].encode();
        let items = items_of(&bytes).unwrap();
        assert_eq!(u32::try_from(items.len()).unwrap(), page.items);
        let step = &mut job.steps[page.step.position()];
        for (index, (identity, input)) in (page.first..).zip(items) {
            step.items.learn(index, identity, input);
        }
    }
}

fn all_items(job: &Job) -> Vec<ItemId> {
    let steps = StepId::all().zip(&job.steps);
    let items = steps.flat_map(|(step, state)| (0..state.items.len()).map(move |it| step.item(it)));
    items.collect()
}

/// The histories of these items, from the records that the index finds.
fn through_index(journal: &HistoryJob, job: &Job, shown: &Projection, items: BTreeSet<ItemId>) -> Histories {
    let mut versions = shown.index.records_of(&items);
    versions.extend(&shown.turns);
    versions.sort_unstable();
    let mut then = Job::begin(&journal.records[0]).unwrap();
    then.texts = job.texts.clone();
    let mut histories = Histories::of(items);
    for version in versions {
        let record = &journal.records[usize::try_from(version - 1).unwrap()];
        if let Event::Job(JobEvent::PolicyChanged { .. }) = &record.event {
            then.apply(record);
        }
        histories.take(&then, record);
    }
    histories
}

fn case() -> impl Strategy<Value = (String, u64, Vec<OwnerAction>)> {
    (workflow(), any::<u64>(), vec(owner_action(), 0..60))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_running_process_and_a_reader_of_the_journal_have_the_same_projection(
        (text, seed, actions) in case(),
    ) {
        let journal = HistoryJob::of(&text, seed, &actions);
        let mut by_record = Vec::new();
        journal.fold(Projection::following_all(), |_, _, shown| by_record.push(shown.clone()));
        // The running process applies all records of a decision before it projects the first.
        let (mut live, mut before) = (Projection::following_all(), 0);
        let mut job = Job::begin(&journal.records[0]).unwrap();
        for committed in journal.commits.iter().copied() {
            let new = &journal.records[before..committed];
            for record in new.iter().skip(usize::from(before == 0)) {
                job.apply(record);
            }
            for (place, record) in (before..).zip(new) {
                live.take(&job, u64::try_from(place).unwrap() + 1, record);
            }
            before = committed;
            prop_assert_eq!(&live, &by_record[committed - 1]);
        }
        prop_assert_eq!(before, journal.records.len());
    }

    #[test]
    fn a_projection_saved_after_any_record_can_be_continued(
        (text, seed, actions) in case(),
    ) {
        let journal = HistoryJob::of(&text, seed, &actions);
        let mut saved = Vec::new();
        let mut last = Projection::default();
        journal.fold(Projection::default(), |version, job, shown| {
            let restored = restored(shown);
            assert_eq!(&restored, shown);
            saved.push((version, job.clone(), restored));
            last = shown.clone();
        });
        for (version, job, shown) in saved {
            let (_, followed) = journal.follow(job, shown, version);
            prop_assert_eq!(&followed, &last, "saved after {}", version);
        }
    }

    #[test]
    fn a_job_saved_without_its_inputs_can_be_continued_and_learns_them_again(
        (text, seed, actions) in case(),
    ) {
        let journal = HistoryJob::of(&text, seed, &actions);
        let plans = Plans::default();
        let mut saved = Vec::new();
        let mut last = Projection::default();
        let job = journal.fold(Projection::default(), |version, job, shown| {
            last = shown.clone();
            // Nothing is saved between the records of a decision.
            if journal.commits.contains(&usize::try_from(version).unwrap()) {
                let mut restored = Job::restore(&job.snapshot_without_inputs(), &plans).unwrap();
                saved.push((version, restored.clone(), shown.clone()));
                learn_all(&mut restored, shown, &journal);
                assert_eq!(digest(&restored), digest(job));
            }
        });
        for (version, restored, shown) in saved {
            let (mut followed, shown) = journal.follow(restored, shown, version);
            // Items that were read after the snapshot are learned too.
            learn_all(&mut followed, &shown, &journal);
            prop_assert_eq!(digest(&followed), digest(&job), "saved after {}", version);
        }
    }

    #[test]
    fn the_index_finds_every_record_of_an_item_and_every_item_by_its_name(
        (text, seed, actions) in case(),
        picked in vec(any::<Index>(), 1..4),
    ) {
        let journal = HistoryJob::of(&text, seed, &actions);
        let mut whole = Histories::of_all();
        let mut shown = Projection::default();
        let job = journal.fold(Projection::default(), |version, job, now| {
            whole.take(job, &journal.records[usize::try_from(version - 1).unwrap()]);
            shown = now.clone();
        });
        let all = all_items(&job);
        let mut subsets: Vec<BTreeSet<ItemId>> = all.iter().map(|it| [*it].into()).collect();
        if !all.is_empty() {
            subsets.push(picked.iter().map(|it| *it.get(&all)).collect());
        }
        subsets.push(all.iter().copied().collect());
        for items in subsets {
            let found = through_index(&journal, &job, &shown, items.clone());
            let mut expected = whole.items.clone();
            expected.retain(|item, _| items.contains(item));
            prop_assert_eq!(found.items, expected);
        }
        for item in all {
            let is_map = job.plan().is_map(item.step);
            let named = shown.index.named(job.identity(item));
            prop_assert_eq!(named.contains(&item), is_map);
            let Some(page) = shown.index.page_of(item) else {
                prop_assert!(!is_map);
                continue;
            };
            let record = &journal.records[usize::try_from(page.version - 1).unwrap()];
            let Event::Step(StepEvent::ItemsRead { step, items, .. }) = &record.event else {
                panic!("{record:?}");
            };
            prop_assert_eq!(*step, item.step);
            let place = usize::try_from(item.index - page.first).unwrap();
            prop_assert_eq!(&items[place].identity, job.identity(item));
        }
    }
}
