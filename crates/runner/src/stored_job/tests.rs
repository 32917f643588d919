//! A job is read the same way with and without a usable snapshot.

use std::time::Duration;

use undaunted_engine::event::{Event, ImportedCommand, JobEvent};
use undaunted_engine::id::{CommandId, StartId, StepId};
use undaunted_engine::job::Plans;
use undaunted_policy::{FailureCause, Timestamp};
use undaunted_store::{MemoryStore, Store, Version};

use super::{StoredJob, aggregate, snapshot_bytes};
use crate::journal::deposit;
use crate::test_job::TestJob;

const WORKFLOW: &str = "
mode: mapreduce
map:
  input: items.txt
  agent_template:
    - shell: 'false'
      retry_config: {attempts: 5, initial_delay: 1h}
";

/// A job whose first items have failed and wait.
fn job_with_failures(submitted_at: u64, failures: u32) -> TestJob {
    let mut job = TestJob::submitted(WORKFLOW, StepId(0), 9, Timestamp::from_millis(submitted_at));
    for item in 0..failures {
        job.start(StepId(0).item(item));
        job.end(StartId(u64::from(item) + 1), Some(FailureCause::Exit(1)));
    }
    job
}

fn snapshot(job: &TestJob) -> Vec<u8> {
    snapshot_bytes(&job.job, &last(job))
}

fn last(job: &TestJob) -> Vec<u8> {
    job.records.last().unwrap().encode()
}

fn store(job: &TestJob) -> MemoryStore {
    job.store(job.records.len())
}

/// Reads a job from a store that has this snapshot of it.
fn read_with(job: &TestJob, at: Version, snapshot: Vec<u8>) -> StoredJob {
    let store = store(job);
    store.save_snapshot(&aggregate("a").unwrap(), at, snapshot).unwrap();
    read(&store)
}

fn read(store: &MemoryStore) -> StoredJob {
    StoredJob::read(store, "a", &Plans::default()).unwrap()
}

#[test]
fn a_job_is_read_from_its_snapshot_and_later_records() {
    let before = job_with_failures(1_000, 1);
    let job = job_with_failures(1_000, 2);
    let bytes = snapshot(&before);
    let known = read_with(&job, before.version(), bytes.clone());
    assert_eq!(known.saved, (before.version(), bytes.len()));
    assert_eq!((known.version, known.last), (job.version(), last(&job)));
    assert_eq!(known.job.save(), job.job.save());
}

#[test]
fn a_snapshot_of_another_history_is_not_used() {
    let job = job_with_failures(1_000, 1);
    let other = job_with_failures(2_000, 1);
    assert_eq!(job.version(), other.version());
    let known = read_with(&job, job.version(), snapshot(&other));
    assert_eq!(known.saved.0, Version::EMPTY);
    assert_eq!(known.job.save(), job.job.save());
}

#[test]
fn an_unreadable_snapshot_is_not_used() {
    let job = job_with_failures(1_000, 1);
    let whole = snapshot(&job);
    let behind = last(&job).len() + 4;
    let of_another_release = [b"\x65other", &whole[7..]].concat();
    let cut = [&whole[..40], &whole[whole.len() - behind..]].concat();
    for bytes in [Vec::new(), vec![0xff; 4], of_another_release, cut] {
        let known = read_with(&job, job.version(), bytes);
        assert_eq!(known.saved.0, Version::EMPTY);
        assert_eq!(known.job.save(), job.job.save());
    }
}

#[test]
fn refreshing_a_job_reads_later_records() {
    let known = read(&store(&job_with_failures(1_000, 1)));
    let later = job_with_failures(1_000, 2);
    let known = known.brought_up_to_date(&store(&later), &Plans::default());
    assert_eq!(known.unwrap().job.save(), later.job.save());
}

#[test]
fn refreshing_a_job_notices_that_its_name_was_reused() {
    let known = read(&store(&job_with_failures(1_000, 1)));
    let other = job_with_failures(2_000, 2);
    let known = known.brought_up_to_date(&store(&other), &Plans::default());
    assert_eq!(known.unwrap().job.save(), other.job.save());
}

#[test]
fn a_large_imported_state_is_read_from_a_snapshot() {
    let job = job_with_failures(1_000, 0);
    let submitted = job.job.submitted().clone();
    let command = |item: usize| ImportedCommand {
        item: format!("item-{item}"),
        command: CommandId(0),
        attempts: 1,
        retries: 1,
        spent: Duration::from_secs(1),
        previous: Some(Duration::from_secs(1)),
        due: Some(Timestamp::from_millis(9_000)),
        expires: None,
        error: None,
        succeeded: None,
        broken: None,
        history: None,
        last_attempt_at: None,
    };
    for (items, is_saved) in [(5, false), (5_000, true)] {
        let commands = (0..items).map(command).collect();
        let imported = JobEvent::StateImported { commands, executions: None, correlations: None };
        let known = [Event::Job(imported), Event::Job(JobEvent::Suspended)];
        let store = MemoryStore::new();
        deposit(&store, submitted.clone(), &known, Timestamp::from_millis(1_000)).unwrap();
        let read = read(&store);
        assert_eq!(read.saved.0 == read.version, is_saved, "{items}");
        assert_eq!(read.job.imported.len(), items);
    }
}
