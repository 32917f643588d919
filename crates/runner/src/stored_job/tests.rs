//! A job is read the same way whatever was saved of it.

use undaunted_engine::breaker::BreakerAnswer;
use undaunted_engine::decide::react;
use undaunted_engine::event::{Event, JobEvent, JobSubmitted, NewItem, Record};
use undaunted_engine::id::{StartId, StepId};
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::{Job, Plans};
use undaunted_policy::{FailureCause, Timestamp};
use undaunted_store::{Append, Epoch, MemoryStore, Store, Version};

use super::{KnownJob, aggregate, snapshot_bytes};

const WORKFLOW: &str = "
mode: mapreduce
map:
  input: items.txt
  agent_template:
    - shell: 'false'
      retry_config: {attempts: 5, initial_delay: 1h}
";

/// A job in a store, some of whose items have failed and wait.
struct Scene {
    store: MemoryStore,
    job: Job,
    version: Version,
    last: Vec<u8>,
    now: Timestamp,
}

impl Scene {
    fn submitted_at(millis: u64) -> Self {
        let now = Timestamp::from_millis(millis);
        let submitted = JobSubmitted {
            job: "a".to_owned(),
            text: WORKFLOW.into(),
            parallel: vec![(StepId(0), 100)],
            ..JobSubmitted::default()
        };
        let first = Record { at: now, event: Event::Job(JobEvent::Submitted(Box::new(submitted))) };
        let mut scene = Self {
            store: MemoryStore::new(),
            job: Job::begin(&first).unwrap(),
            version: Version::EMPTY,
            last: Vec::new(),
            now,
        };
        scene.append(&[first]);
        scene.tell(&Input::Woke);
        let items = (0..9)
            .map(|item| NewItem { identity: format!("item-{item}"), input: format!("\"item-{item}\"") });
        let items = items.collect();
        scene.tell(&Input::ItemsRead { step: StepId(0), items });
        scene
    }

    fn tell(&mut self, input: &Input) {
        let reaction = react(&mut self.job, input, self.now);
        self.append(&reaction.records);
    }

    fn append(&mut self, records: &[Record]) {
        let records: Vec<_> = records.iter().map(Record::encode).collect();
        self.last = records.last().unwrap().clone();
        let of = aggregate(self.job.id()).unwrap();
        let append = Append::new(of, self.version, Epoch::UNCLAIMED, records);
        self.version = append.reaches(self.version);
        self.store.append(vec![append]).unwrap();
    }

    fn fail(&mut self, item: u32) {
        self.tell(&Input::Start {
            item: StepId(0).item(item),
            refused: None,
            gate: BreakerAnswer::NoBreaker,
        });
        self.tell(&Input::Ended(Box::new(AttemptEnd {
            start: StartId(u64::from(item) + 1),
            failure: Some(FailureCause::Exit(1)),
            ..AttemptEnd::default()
        })));
    }

    fn save(&self, bytes: Vec<u8>) {
        let of = aggregate(self.job.id()).unwrap();
        self.store.save_snapshot(&of, self.version, bytes).unwrap();
    }

    fn read(&self) -> KnownJob {
        KnownJob::read(&self.store, self.job.id(), &Plans::default()).unwrap()
    }
}

#[test]
fn a_job_is_read_from_its_snapshot_and_later_records() {
    let mut scene = Scene::submitted_at(1_000);
    scene.fail(0);
    let saved = snapshot_bytes(&scene.job, &scene.last);
    scene.save(saved.clone());
    let at = scene.version;
    scene.fail(1);
    let known = scene.read();
    assert_eq!(known.saved, (at, saved.len()));
    assert_eq!(known.version, scene.version);
    assert_eq!(known.last, scene.last);
    assert_eq!(known.job.save(), scene.job.save());
}

#[test]
fn a_snapshot_of_another_history_is_not_used() {
    let mut scene = Scene::submitted_at(1_000);
    scene.fail(0);
    let mut other = Scene::submitted_at(2_000);
    other.fail(0);
    assert_eq!(scene.version, other.version);
    scene.save(snapshot_bytes(&other.job, &other.last));
    assert_eq!(scene.read().saved.0, Version::EMPTY);
    assert_eq!(scene.read().job.save(), scene.job.save());
}

#[test]
fn an_unreadable_snapshot_is_not_used() {
    let mut scene = Scene::submitted_at(1_000);
    scene.fail(0);
    let whole = snapshot_bytes(&scene.job, &scene.last);
    let behind = scene.last.len() + 4;
    let of_another_release = [b"\x65other", &whole[7..]].concat();
    let cut = [&whole[..40], &whole[whole.len() - behind..]].concat();
    for bytes in [Vec::new(), vec![0xff; 4], of_another_release, cut] {
        scene.save(bytes);
        assert_eq!(scene.read().saved.0, Version::EMPTY);
        assert_eq!(scene.read().job.save(), scene.job.save());
    }
}

#[test]
fn refreshing_a_job_reads_later_records() {
    let mut scene = Scene::submitted_at(1_000);
    scene.fail(0);
    let known = scene.read();
    scene.fail(1);
    let known = known.brought_up_to_date(&scene.store, &Plans::default());
    assert_eq!(known.unwrap().job.save(), scene.job.save());
}

#[test]
fn refreshing_a_job_notices_that_its_name_was_reused() {
    let mut scene = Scene::submitted_at(1_000);
    scene.fail(0);
    let known = scene.read();
    let mut other = Scene::submitted_at(2_000);
    other.fail(0);
    other.fail(1);
    let known = known.brought_up_to_date(&other.store, &Plans::default());
    assert_eq!(known.unwrap().job.save(), other.job.save());
}
