//! A job reads the same with an index as without one, even if the file is damaged.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use tempfile::TempDir;
use undaunted_engine::event::Record;
use undaunted_engine::id::{ItemId, StartId, StepId};
use undaunted_engine::input::Input;
use undaunted_engine::job::{Job, Plans};
use undaunted_engine::view::Projection;
use undaunted_engine::view::history::{History, PastAttempt};
use undaunted_policy::{FailureCause, Timestamp};
use undaunted_store::{Append, Epoch, MemoryStore, Store, Version};

use super::JobReader;
use crate::journal::aggregate;
use crate::test_job::{TestJob, append};
use crate::{JobFolder, JournalError, LocalFolder};

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
enum TestJobAction {
    /// Start all items that may start.
    Start,
    End {
        which: Index,
        failure: Option<FailureCause>,
    },
    /// Run all items to their ends.
    Finish,
    Redrive {
        reduce: bool,
    },
    Drop,
    Suspend,
    /// Change the settings.
    Update,
}

fn action() -> impl Strategy<Value = TestJobAction> {
    let failure = prop_oneof![
        3 => Just(None),
        2 => Just(Some(FailureCause::Exit(1))),
        2 => Just(Some(FailureCause::Exit(3))),
    ];
    prop_oneof![
        10 => Just(TestJobAction::Start),
        14 => (any::<Index>(), failure).prop_map(|(which, failure)| TestJobAction::End { which, failure }),
        2 => Just(TestJobAction::Finish),
        2 => any::<bool>().prop_map(|reduce| TestJobAction::Redrive { reduce }),
        1 => Just(TestJobAction::Drop),
        1 => Just(TestJobAction::Suspend),
        3 => Just(TestJobAction::Update),
    ]
}

/// A job of so many items after these actions.
fn job_after(items: u32, actions: &[TestJobAction]) -> TestJob {
    // Jobs of different sizes have no record in common: the last record that an index covers tells them
    // apart.
    let now = Timestamp::from_millis(1_700_000_000_000 + u64::from(items));
    let mut job = TestJob::submitted(WORKFLOW, StepId(1), items, now);
    for action in actions {
        act(&mut job, action);
    }
    job
}

fn act(job: &mut TestJob, action: &TestJobAction) {
    let dead: Vec<ItemId> = job.job.dead.keys().copied().collect();
    match action {
        TestJobAction::Start => start_all(job),
        TestJobAction::End { which, failure } => {
            let running: Vec<StartId> = job.job.starts.running.keys().copied().collect();
            if !running.is_empty() {
                job.end(*which.get(&running), *failure);
            }
        }
        TestJobAction::Finish => {
            for _ in 0..60 {
                start_all(job);
                let running = job.job.starts.running.keys().copied();
                for start in running.collect::<Vec<_>>() {
                    job.end(start, None);
                }
                job.now = job.now.after(Duration::from_secs(9));
            }
        }
        TestJobAction::Redrive { reduce } => {
            job.input(&Input::Redrive { items: dead, reduce: *reduce, every: None });
        }
        TestJobAction::Drop => job.input(&Input::Drop { items: dead.into_iter().take(1).collect() }),
        TestJobAction::Suspend => {
            job.input(&Input::Suspend);
            job.input(&Input::Resume { last_seen: None });
        }
        TestJobAction::Update => {
            let text = &job.job.submitted().text;
            let there = text.replace("exit_code: 3", "exit_code: [3, 4]");
            let text =
                if there == **text { text.replace("exit_code: [3, 4]", "exit_code: 3") } else { there };
            let (text, changes) = (text.as_str().into(), Vec::new());
            job.input(&Input::Update { text, changes });
        }
    }
}

fn start_all(job: &mut TestJob) {
    for item in all_items(&job.job) {
        job.start(item);
    }
}

fn all_items(job: &Job) -> Vec<ItemId> {
    let steps = StepId::all().zip(&job.steps);
    steps.flat_map(|(step, state)| (0..state.items.len()).map(move |it| step.item(it))).collect()
}

/// Everything that a reader returns about a job.
#[derive(Debug, PartialEq)]
struct ReaderOutput {
    version: Version,
    projection: Projection,
    job: String,
    histories: Vec<(ItemId, Option<History>)>,
    found: Vec<(String, Vec<(ItemId, String)>)>,
    attempts: Vec<(String, PastAttempt)>,
}

/// `picked` are items whose histories are read together first.
fn output_of(mut reader: JobReader<'_>, picked: &[Index]) -> ReaderOutput {
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
        found.push((typed.to_owned(), known.map(|it| (*it, reader.job.identity(*it).to_owned())).collect()));
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
        assert_eq!(own, history.iter().flat_map(|history| &history.attempts).collect::<Vec<_>>());
    }
    assert!(attempts.is_sorted_by_key(|(_, attempt)| attempt.began));
    // With all names learned, the whole job is compared.
    reader.load_items(all).unwrap();
    ReaderOutput {
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
fn without_index(store: &MemoryStore, picked: &[Index]) -> ReaderOutput {
    let nowhere = TempDir::new().unwrap();
    let folder = LocalFolder::new(nowhere.path()).job("a");
    let plans = Plans::default();
    let reader = JobReader::open_indexing(store, &folder, "a", &plans, u64::MAX).unwrap();
    let shown = output_of(reader, picked);
    assert!(!folder.index().exists());
    shown
}

fn save_index(store: &MemoryStore, folder: &JobFolder, many: u64) -> u64 {
    let plans = Plans::default();
    JobReader::open_indexing(store, folder, "a", &plans, many).unwrap().version().0
}

/// The output of a reader that uses the index in this folder.
fn with_index(store: &MemoryStore, folder: &JobFolder, picked: &[Index]) -> ReaderOutput {
    let plans = Plans::default();
    let reader = JobReader::open_indexing(store, folder, "a", &plans, u64::MAX).unwrap();
    output_of(reader, picked)
}

/// Whether the reader uses the index in this folder.
fn is_used(store: &MemoryStore, folder: &JobFolder) -> bool {
    let plans = Plans::default();
    let reader = JobReader::open_indexing(store, folder, "a", &plans, u64::MAX).unwrap();
    let mut steps = reader.job.steps.iter();
    steps.any(|step| step.items.are_left_out())
}

fn case() -> impl Strategy<Value = (u32, Vec<TestJobAction>, Vec<Index>)> {
    (1_u32..8, vec(action(), 0..40), vec(any::<Index>(), 1..4))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_job_reads_the_same_with_an_index_of_any_age(
        (items, actions, picked) in case(),
        ages in vec(any::<Index>(), 1..4),
    ) {
        let job = job_after(items, &actions);
        let all = job.records.len();
        let mut ages: Vec<usize> = ages.iter().map(|age| age.index(all).max(1) + 1).collect();
        ages.sort_unstable();
        let home = TempDir::new().unwrap();
        let folder = LocalFolder::new(home.path()).job("a");
        let (store, mut written) = (MemoryStore::new(), 0);
        for age in ages.into_iter().chain([all]) {
            append(&store, &job.records[written..age], written);
            written = age;
            let expected = without_index(&store, &picked);
            prop_assert_eq!(with_index(&store, &folder, &picked), expected);
            let version = save_index(&store, &folder, 1);
            prop_assert_eq!(version, u64::try_from(age).unwrap());
            prop_assert!(is_used(&store, &folder));
        }
        let expected = without_index(&store, &picked);
        prop_assert_eq!(with_index(&store, &folder, &picked), expected);
    }

    #[test]
    fn an_index_that_is_damaged_or_cut_is_not_used(
        (items, actions, picked) in case(),
        place in any::<Index>(),
        flip in 1_u8..,
        is_cut in any::<bool>(),
    ) {
        let job = job_after(items, &actions);
        let store = job.store(job.records.len());
        let home = TempDir::new().unwrap();
        let folder = LocalFolder::new(home.path()).job("a");
        save_index(&store, &folder, 1);
        let mut bytes = std::fs::read(folder.index()).unwrap();
        let place = place.index(bytes.len());
        if is_cut {
            bytes.truncate(place);
        } else {
            bytes[place] ^= flip;
        }
        std::fs::write(folder.index(), bytes).unwrap();
        prop_assert!(!is_used(&store, &folder));
        let expected = without_index(&store, &picked);
        prop_assert_eq!(with_index(&store, &folder, &picked), expected);
        // The next reader replaces it.
        save_index(&store, &folder, 1);
        prop_assert!(is_used(&store, &folder));
    }

    #[test]
    fn an_index_that_is_ahead_of_a_restored_journal_is_not_used(
        (items, actions, picked) in case(),
        age in any::<Index>(),
        other in vec(action(), 0..20),
    ) {
        let job = job_after(items, &actions);
        let home = TempDir::new().unwrap();
        let folder = LocalFolder::new(home.path()).job("a");
        save_index(&job.store(job.records.len()), &folder, 1);
        let restored = job.store(age.index(job.records.len()).max(1));
        prop_assert_eq!(with_index(&restored, &folder, &picked), without_index(&restored, &picked));
        // After the backup was restored, the job took another course.
        let way: Vec<TestJobAction> = other.into_iter().chain([TestJobAction::Finish]).collect();
        let way = job_after(items + 1, &way);
        let store = way.store(way.records.len());
        prop_assert_eq!(with_index(&store, &folder, &picked), without_index(&store, &picked));
    }
}

fn finished() -> TestJob {
    job_after(4, &[TestJobAction::Finish, TestJobAction::Redrive { reduce: true }, TestJobAction::Finish])
}

#[test]
fn the_index_of_another_job_is_not_used() {
    let job = finished();
    let store = job.store(job.records.len());
    let home = TempDir::new().unwrap();
    let local = LocalFolder::new(home.path());
    save_index(&store, &local.job("a"), 1);
    std::fs::create_dir_all(local.job("b").path()).unwrap();
    std::fs::copy(local.job("a").index(), local.job("b").index()).unwrap();
    let records: Vec<_> = job.records.iter().map(Record::encode).collect();
    let of = aggregate("b").unwrap();
    let append = Append::new(of, Version::EMPTY, Epoch::UNCLAIMED, records);
    store.append(vec![append]).unwrap();
    let plans = Plans::default();
    let open = |job| JobReader::open_indexing(&store, &local.job(job), job, &plans, u64::MAX);
    let is_used = |job| open(job).unwrap().job.steps.iter().any(|it| it.items.are_left_out());
    assert!(is_used("a") && !is_used("b"));
}

#[test]
fn an_index_that_cannot_be_saved_is_not_an_error() {
    let job = finished();
    let store = job.store(job.records.len());
    let home = TempDir::new().unwrap();
    // A file where the folder should be stops root too.
    std::fs::write(home.path().join("jobs"), "").unwrap();
    let folder = LocalFolder::new(home.path()).job("a");
    let all = u64::try_from(job.records.len()).unwrap();
    assert_eq!(save_index(&store, &folder, 1), all);
    assert!(!is_used(&store, &folder));
    let home = TempDir::new().unwrap();
    let folder = LocalFolder::new(home.path()).job("a");
    let mode = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(home.path(), mode).unwrap();
    };
    mode(0o500);
    assert_eq!(save_index(&store, &folder, 1), all);
    mode(0o700);
}

#[test]
fn few_records_are_not_worth_an_index() {
    let job = finished();
    let store = job.store(job.records.len());
    let home = TempDir::new().unwrap();
    let folder = LocalFolder::new(home.path()).job("a");
    JobReader::open(&store, &folder, "a", &Plans::default()).unwrap();
    assert!(!folder.index().exists());
}
