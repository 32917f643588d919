//! A job is shown the same with an index as without one, whatever has become of the file.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use tempfile::TempDir;
use undaunted_engine::breaker::BreakerAnswer;
use undaunted_engine::decide::react;
use undaunted_engine::event::{Event, JobEvent, JobSubmitted, NewItem, Record};
use undaunted_engine::id::{ItemId, StartId, StepId};
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::{Job, Plans, StepStage};
use undaunted_engine::view::Projection;
use undaunted_engine::view::history::{History, PastAttempt};
use undaunted_policy::{FailureCause, Timestamp};
use undaunted_store::{Append, Epoch, MemoryStore, Store, Version};

use super::JobReader;
use crate::folder::{JobFolder, LocalFolder};
use crate::journal::{JournalError, aggregate};

const WORKFLOW: &str = "
mode: mapreduce
setup: [{shell: before}]
map:
  input: items.txt
  max_parallel: 3
  agent_template:
    - shell: a
      retry_config: {attempts: 1, initial_delay: 1s, rules: [{exit_code: 3, then: dead_letter}]}
    - shell: b
reduce: [{shell: r}]
";

#[derive(Clone, Debug)]
enum Turn {
    /// All items that may start do.
    Start,
    End {
        which: Index,
        failure: Option<FailureCause>,
    },
    /// All that run and wait come to their ends.
    Finish,
    Redrive {
        reduce: bool,
    },
    Drop,
    Suspend,
    /// Other settings.
    Update,
}

fn turn() -> impl Strategy<Value = Turn> {
    let failure = prop_oneof![
        3 => Just(None),
        2 => Just(Some(FailureCause::Exit(1))),
        2 => Just(Some(FailureCause::Exit(3))),
    ];
    prop_oneof![
        10 => Just(Turn::Start),
        14 => (any::<Index>(), failure).prop_map(|(which, failure)| Turn::End { which, failure }),
        2 => Just(Turn::Finish),
        2 => any::<bool>().prop_map(|reduce| Turn::Redrive { reduce }),
        1 => Just(Turn::Drop),
        1 => Just(Turn::Suspend),
        3 => Just(Turn::Update),
    ]
}

/// A job without a store.
struct Scene {
    job: Job,
    records: Vec<Record>,
    now: Timestamp,
    items: u32,
}

impl Scene {
    fn of(items: u32, turns: &[Turn]) -> Self {
        // Jobs of different sizes have no record in common: an index is told apart by the last one it covers.
        let now = Timestamp::from_millis(1_700_000_000_000 + u64::from(items));
        let submitted = JobSubmitted {
            job: "a".to_owned(),
            text: WORKFLOW.into(),
            parallel: vec![(StepId(1), 3)],
            ..JobSubmitted::default()
        };
        let first = Record { at: now, event: Event::Job(JobEvent::Submitted(Box::new(submitted))) };
        let mut scene = Self { job: Job::begin(&first).unwrap(), records: vec![first], now, items };
        scene.tell(&Input::Woke);
        for turn in turns {
            scene.take(turn);
        }
        scene
    }

    fn tell(&mut self, input: &Input) {
        self.now = self.now.after(Duration::from_millis(700));
        let reaction = react(&mut self.job, input, self.now);
        self.records.extend(reaction.records);
        let mut steps = StepId::all().zip(&self.job.steps);
        let reading = steps.find(|(_, state)| matches!(state.stage, StepStage::Reading(_)));
        if let Some((step, _)) = reading {
            let items = (0..self.items).map(|item| NewItem {
                // Names repeat, and some begin like others.
                identity: format!("item-{}", item / 2),
                input: format!("{{\"n\": {item}}}"),
            });
            let items = items.collect();
            self.tell(&Input::ItemsRead { step, items });
        }
    }

    fn take(&mut self, turn: &Turn) {
        let dead = || self.job.dead.keys().copied().collect();
        match turn {
            Turn::Start => self.start(),
            Turn::End { which, failure } => {
                let running: Vec<StartId> = self.job.starts.running.keys().copied().collect();
                if !running.is_empty() {
                    self.end(*which.get(&running), *failure);
                }
            }
            Turn::Finish => {
                for _ in 0..60 {
                    self.start();
                    let running = self.job.starts.running.keys().copied();
                    for start in running.collect::<Vec<_>>() {
                        self.end(start, None);
                    }
                    self.now = self.now.after(Duration::from_secs(9));
                }
            }
            Turn::Redrive { reduce } => {
                let (items, reduce) = (dead(), *reduce);
                self.tell(&Input::Redrive { items, reduce });
            }
            Turn::Drop => {
                let items: Vec<ItemId> = dead();
                let items = items.into_iter().take(1).collect();
                self.tell(&Input::Drop { items });
            }
            Turn::Suspend => {
                self.tell(&Input::Suspend);
                self.tell(&Input::Resume { seen: None });
            }
            Turn::Update => {
                let text = &self.job.submitted().text;
                let there = text.replace("exit_code: 3", "exit_code: [3, 4]");
                let text =
                    if there == **text { text.replace("exit_code: [3, 4]", "exit_code: 3") } else { there };
                let (text, changes) = (text.as_str().into(), Vec::new());
                self.tell(&Input::Update { text, changes });
            }
        }
    }

    fn start(&mut self) {
        for item in all_items(&self.job) {
            self.tell(&Input::Start { item, refused: None, gate: BreakerAnswer::NoBreaker });
        }
    }

    fn end(&mut self, start: StartId, failure: Option<FailureCause>) {
        let error = failure.map_or_else(String::new, |it| format!("failed {}: {it:?}", start.0));
        self.tell(&Input::Ended(Box::new(AttemptEnd {
            start,
            failure,
            took: Duration::from_millis(3),
            error,
            ..AttemptEnd::default()
        })));
    }

    /// A store with the first records of it.
    fn store(&self, records: usize) -> MemoryStore {
        let store = MemoryStore::new();
        append(&store, &self.records[..records], 0);
        store
    }
}

fn append(store: &MemoryStore, records: &[Record], after: usize) {
    let records: Vec<_> = records.iter().map(Record::encode).collect();
    let version = Version(u64::try_from(after).unwrap());
    if !records.is_empty() {
        let append = Append::new(aggregate("a").unwrap(), version, Epoch::UNCLAIMED, records);
        store.append(vec![append]).unwrap();
    }
}

fn all_items(job: &Job) -> Vec<ItemId> {
    let steps = StepId::all().zip(&job.steps);
    let items = steps.flat_map(|(step, state)| (0..state.items.len()).map(move |it| step.item(it)));
    items.collect()
}

/// Everything that a reader says of a job.
#[derive(Debug, PartialEq)]
struct Shown {
    version: Version,
    projection: Projection,
    job: String,
    histories: Vec<(ItemId, Option<History>)>,
    found: Vec<(String, Vec<(ItemId, String)>)>,
    attempts: Vec<(String, PastAttempt)>,
}

/// `picked` are items whose histories are read together first.
fn shown(mut reader: JobReader<'_>, picked: &[Index]) -> Shown {
    let all = all_items(&reader.job);
    let together: BTreeSet<ItemId> = match all.as_slice() {
        [] => BTreeSet::new(),
        all => picked.iter().map(|it| *it.get(all)).collect(),
    };
    let first = reader.histories(together.clone()).unwrap();
    for item in together.iter().filter(|it| first.contains_key(it)) {
        assert_ne!(reader.job.identity(*item), "");
    }
    let mut found = Vec::new();
    for typed in ["item-0", "item-1", "item-", "#0", "#3", "#99", "before", "r", "x", ""] {
        let items = reader.find(typed).unwrap();
        let known = items.iter().take(10);
        let named = known.map(|it| (*it, reader.job.identity(*it).to_owned()));
        found.push((typed.to_owned(), named.collect()));
    }
    let mut attempts = Vec::new();
    let each = reader.each_attempt(|job, attempt| {
        let name = job.identity(attempt.of.item()).to_owned();
        attempts.push((name, attempt.clone()));
        Ok::<_, JournalError>(())
    });
    each.unwrap();
    let mut histories: Vec<_> = first.into_iter().map(|(item, it)| (item, Some(it))).collect();
    for item in &all {
        let mut one = reader.histories([*item].into()).unwrap();
        histories.push((*item, one.remove(item)));
    }
    for (item, history) in &histories {
        let own = attempts.iter().filter(|(_, it)| it.of.item() == *item);
        let own: Vec<_> = own.map(|(_, attempt)| attempt).collect();
        let read = history.iter().flat_map(|history| &history.attempts);
        assert_eq!(own, read.collect::<Vec<_>>());
    }
    assert!(attempts.is_sorted_by_key(|(_, attempt)| attempt.began));
    // With all names learned, the whole job is compared.
    reader.learn(all).unwrap();
    Shown {
        version: reader.version(),
        projection: reader.projection.clone(),
        job: format!(
            "{:?} {:?} {:?} {:?} {:?} {:?}",
            reader.job.steps,
            reader.job.stage,
            reader.job.counts,
            reader.job.dead,
            reader.job.starts.running,
            reader.job.times.last_at
        ),
        histories,
        found,
        attempts,
    }
}

/// Reads without an index and saves none.
fn plainly(store: &MemoryStore, picked: &[Index]) -> Shown {
    let nowhere = TempDir::new().unwrap();
    let folder = LocalFolder::new(nowhere.path()).job("a");
    let plans = Plans::default();
    let reader = JobReader::open_indexing(store, &folder, "a", &plans, u64::MAX).unwrap();
    let shown = shown(reader, picked);
    assert!(!folder.index().exists());
    shown
}

fn indexing(store: &MemoryStore, folder: &JobFolder, many: u64) -> u64 {
    let plans = Plans::default();
    let reader = JobReader::open_indexing(store, folder, "a", &plans, many).unwrap();
    reader.version().0
}

/// What is shown with the index that is in this folder.
fn by_index(store: &MemoryStore, folder: &JobFolder, picked: &[Index]) -> Shown {
    let plans = Plans::default();
    let reader = JobReader::open_indexing(store, folder, "a", &plans, u64::MAX).unwrap();
    shown(reader, picked)
}

/// Whether the reader uses the index that is in this folder.
fn is_used(store: &MemoryStore, folder: &JobFolder) -> bool {
    let plans = Plans::default();
    let reader = JobReader::open_indexing(store, folder, "a", &plans, u64::MAX).unwrap();
    let mut steps = reader.job.steps.iter();
    steps.any(|step| step.items.are_left_out())
}

fn case() -> impl Strategy<Value = (u32, Vec<Turn>, Vec<Index>)> {
    (1_u32..8, vec(turn(), 0..40), vec(any::<Index>(), 1..4))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_job_reads_the_same_with_an_index_of_any_age(
        (items, turns, picked) in case(),
        ages in vec(any::<Index>(), 1..4),
    ) {
        let scene = Scene::of(items, &turns);
        let all = scene.records.len();
        let mut ages: Vec<usize> = ages.iter().map(|age| age.index(all).max(1) + 1).collect();
        ages.sort_unstable();
        let home = TempDir::new().unwrap();
        let folder = LocalFolder::new(home.path()).job("a");
        let (store, mut written) = (MemoryStore::new(), 0);
        for age in ages.into_iter().chain([all]) {
            append(&store, &scene.records[written..age], written);
            written = age;
            let expected = plainly(&store, &picked);
            prop_assert_eq!(by_index(&store, &folder, &picked), expected);
            let version = indexing(&store, &folder, 1);
            prop_assert_eq!(version, u64::try_from(age).unwrap());
            prop_assert!(is_used(&store, &folder));
        }
        let expected = plainly(&store, &picked);
        prop_assert_eq!(by_index(&store, &folder, &picked), expected);
    }

    #[test]
    fn an_index_that_is_damaged_or_cut_is_not_used(
        (items, turns, picked) in case(),
        place in any::<Index>(),
        flip in 1_u8..,
        is_cut in any::<bool>(),
    ) {
        let scene = Scene::of(items, &turns);
        let store = scene.store(scene.records.len());
        let home = TempDir::new().unwrap();
        let folder = LocalFolder::new(home.path()).job("a");
        indexing(&store, &folder, 1);
        let mut bytes = std::fs::read(folder.index()).unwrap();
        let place = place.index(bytes.len());
        if is_cut {
            bytes.truncate(place);
        } else {
            bytes[place] ^= flip;
        }
        std::fs::write(folder.index(), bytes).unwrap();
        prop_assert!(!is_used(&store, &folder));
        let expected = plainly(&store, &picked);
        prop_assert_eq!(by_index(&store, &folder, &picked), expected);
        // The next reader replaces it.
        indexing(&store, &folder, 1);
        prop_assert!(is_used(&store, &folder));
    }

    #[test]
    fn an_index_that_is_ahead_of_a_restored_journal_is_not_used(
        (items, turns, picked) in case(),
        age in any::<Index>(),
        other in vec(turn(), 0..20),
    ) {
        let scene = Scene::of(items, &turns);
        let home = TempDir::new().unwrap();
        let folder = LocalFolder::new(home.path()).job("a");
        indexing(&scene.store(scene.records.len()), &folder, 1);
        let restored = scene.store(age.index(scene.records.len()).max(1));
        prop_assert_eq!(by_index(&restored, &folder, &picked), plainly(&restored, &picked));
        // The job went another way since the backup, as far or farther.
        let way: Vec<Turn> = other.into_iter().chain([Turn::Finish]).collect();
        let way = Scene::of(items + 1, &way);
        let store = way.store(way.records.len());
        prop_assert_eq!(by_index(&store, &folder, &picked), plainly(&store, &picked));
    }
}

fn finished() -> Scene {
    Scene::of(4, &[Turn::Finish, Turn::Redrive { reduce: true }, Turn::Finish])
}

#[test]
fn the_index_of_another_job_is_not_used() {
    let scene = finished();
    let store = scene.store(scene.records.len());
    let home = TempDir::new().unwrap();
    let local = LocalFolder::new(home.path());
    indexing(&store, &local.job("a"), 1);
    std::fs::create_dir_all(local.job("b").path()).unwrap();
    std::fs::copy(local.job("a").index(), local.job("b").index()).unwrap();
    let records: Vec<_> = scene.records.iter().map(Record::encode).collect();
    let of = aggregate("b").unwrap();
    let append = Append::new(of, Version::EMPTY, Epoch::UNCLAIMED, records);
    store.append(vec![append]).unwrap();
    let plans = Plans::default();
    let open = |job| JobReader::open_indexing(&store, &local.job(job), job, &plans, u64::MAX);
    let is_used = |job| {
        let reader = open(job).unwrap();
        reader.job.steps.iter().any(|it| it.items.are_left_out())
    };
    assert!(is_used("a") && !is_used("b"));
}

#[test]
fn an_index_that_cannot_be_saved_is_not_an_error() {
    let scene = finished();
    let store = scene.store(scene.records.len());
    let home = TempDir::new().unwrap();
    // A file where the folder should be stops root too.
    std::fs::write(home.path().join("jobs"), "").unwrap();
    let folder = LocalFolder::new(home.path()).job("a");
    let all = u64::try_from(scene.records.len()).unwrap();
    assert_eq!(indexing(&store, &folder, 1), all);
    assert!(!is_used(&store, &folder));
    let home = TempDir::new().unwrap();
    let folder = LocalFolder::new(home.path()).job("a");
    let mode = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(home.path(), mode).unwrap();
    };
    mode(0o500);
    assert_eq!(indexing(&store, &folder, 1), all);
    mode(0o700);
}

#[test]
fn few_records_are_not_worth_an_index() {
    let scene = finished();
    let store = scene.store(scene.records.len());
    let home = TempDir::new().unwrap();
    let folder = LocalFolder::new(home.path()).job("a");
    JobReader::open(&store, &folder, "a", &Plans::default()).unwrap();
    assert!(!folder.index().exists());
}
