//! A snapshot is never ahead of its journal, even after a failed turn.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use undaunted_engine::breaker::BreakerFact;
use undaunted_engine::event::JobSubmitted;
use undaunted_engine::id::{StartId, StepId};
use undaunted_engine::input::AttemptEnd;
use undaunted_engine::job::Plans;
use undaunted_policy::Timestamp;
use undaunted_runner::drive::{EventLoop, NoJobObserver, Notifier, Services};
use undaunted_runner::endpoints::Endpoints;
use undaunted_runner::folder::{JobFolder, LocalFolder};
use undaunted_runner::journal::{self, StoredJob};
use undaunted_runner::keeper::KeeperError;
use undaunted_runner::machine::{CancelCall, KeeperAddress, Machine, ReachedKeeper};
use undaunted_runner::secrets::Secrets;
use undaunted_runner::{ExecutorMessage, FunctionOrder, HttpOrder, NewFile, breakers};
use undaunted_store::{
    AggregateId, Append, AppendError, Claim, ClaimError, Epoch, Findings, FoundSnapshot, Head,
    ListedAggregate, MemoryStore, OnAppended, OnFindings, Owner, Question, Records, RequestId, Store,
    StoreError, StoreRequest, Version,
};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// A store in which the breaker `two` cannot be read while `fails` is set.
struct UnreadableBreakerStore {
    store: MemoryStore,
    fails: AtomicBool,
}

fn busy() -> StoreError {
    let (path, waited) = ("store".into(), Duration::ZERO);
    StoreError::Busy { path, waited }
}

impl Store for UnreadableBreakerStore {
    fn submit(&self, appends: Vec<Append>, done: OnAppended) {
        self.store.submit(appends, done);
    }

    fn head(&self, of: &AggregateId) -> Result<Option<Head>, StoreError> {
        self.store.head(of)
    }

    fn read(&self, of: &AggregateId, after: Version) -> Result<Records<'_>, StoreError> {
        if self.fails.load(Ordering::SeqCst) && of.id() == "two" {
            return Err(busy());
        }
        self.store.read(of, after)
    }

    fn list(&self, family: &str, prefix: &str) -> Result<Vec<ListedAggregate>, StoreError> {
        self.store.list(family, prefix)
    }

    fn trim(&self, of: &AggregateId, before: Version) -> Result<(), StoreError> {
        self.store.trim(of, before)
    }

    fn remove(&self, of: &AggregateId, epoch: Epoch) -> Result<(), AppendError> {
        self.store.remove(of, epoch)
    }

    fn claim(&self, of: &AggregateId) -> Result<Claim, ClaimError> {
        self.store.claim(of)
    }

    fn owner(&self, of: &AggregateId) -> Result<Option<Owner>, StoreError> {
        self.store.owner(of)
    }

    fn unclaim(&self, claim: &Claim) -> Result<(), StoreError> {
        self.store.unclaim(claim)
    }

    fn request(&self, of: &AggregateId, bytes: Vec<u8>) -> Result<RequestId, StoreError> {
        self.store.request(of, bytes)
    }

    fn requests(&self, of: &AggregateId) -> Result<Vec<StoreRequest>, StoreError> {
        self.store.requests(of)
    }

    fn ask(&self, question: Question, done: OnFindings) {
        let is_asked = |of: &AggregateId| of.id() == "two";
        let unread = question.follows.keys().find(|of| is_asked(of)).cloned();
        let unread = unread.filter(|_| self.fails.load(Ordering::SeqCst));
        let done = move |found: Result<Findings, StoreError>| {
            done(found.map(|mut found| {
                let busy = unread.map(|of| (of, Err(busy())));
                found.records.extend(busy);
                found
            }));
        };
        self.store.ask(question, Box::new(done));
    }

    fn save_snapshot(&self, of: &AggregateId, at: Version, bytes: Vec<u8>) -> Result<(), StoreError> {
        self.store.save_snapshot(of, at, bytes)
    }

    fn latest_snapshot(&self, of: &AggregateId) -> Result<FoundSnapshot, StoreError> {
        self.store.latest_snapshot(of)
    }

    fn pulse(&self) -> Result<u64, StoreError> {
        self.store.pulse()
    }
}

/// A call that the test answers.
type PendingCall = (u64, Notifier);

/// A machine whose time the test sets, and on which every batch leads to a snapshot.
#[derive(Default)]
struct ManualMachine {
    millis: AtomicU64,
    called: Mutex<Vec<PendingCall>>,
}

impl Machine for ManualMachine {
    fn uptime(&self) -> Duration {
        Duration::from_millis(self.millis.load(Ordering::SeqCst))
    }

    fn clocks(&self) -> (Timestamp, Duration) {
        (NOW, self.uptime())
    }

    fn save_after(&self) -> u64 {
        1
    }

    fn run_in_background(&self, work: Box<dyn FnOnce() + Send>) {
        work();
    }

    fn send(&self, _: HttpOrder, _: Notifier) -> CancelCall {
        Box::new(|| {})
    }

    fn has_function(&self, _: &str) -> bool {
        true
    }

    fn call(&self, order: FunctionOrder, notifier: Notifier) -> CancelCall {
        self.called.lock().unwrap().push((order.start.0, notifier));
        Box::new(|| {})
    }

    fn keeper(&self, _: KeeperAddress<'_>) -> Result<ReachedKeeper, KeeperError> {
        panic!("there are no programs")
    }

    fn has_spool(&self, _: &JobFolder) -> bool {
        false
    }

    fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
        Ok(b"[\"a\",\"b\"]".to_vec())
    }

    fn write(&self, _: &NewFile<'_>) -> io::Result<()> {
        Ok(())
    }

    fn write_private(&self, _: &Path, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn note_alive(&self, _: &JobFolder) {}

    fn seen_alive(&self, _: &JobFolder) -> Option<Timestamp> {
        None
    }
}

const WORKFLOW: &str = "
mode: mapreduce
map:
  input: {file: items.json, format: json}
  max_parallel: 1
  agent_template:
    - function: f
      breaker: {name: one}
    - function: f
      breaker: {name: two}
";

#[test]
fn the_state_after_a_failed_turn_is_not_saved() {
    let store = Arc::new(UnreadableBreakerStore { store: MemoryStore::new(), fails: AtomicBool::new(false) });
    let machine = Arc::new(ManualMachine::default());
    let services = Services {
        store: Arc::<UnreadableBreakerStore>::clone(&store),
        local: LocalFolder::new("/nowhere"),
        machine: Arc::<ManualMachine>::clone(&machine),
        grace: Duration::ZERO,
        check_interval: Duration::from_secs(1),
        catalog: None,
        endpoints: Endpoints::default(),
        env: vec![],
    };
    let submitted = JobSubmitted {
        job: "job".to_owned(),
        text: WORKFLOW.into(),
        parallel: vec![(StepId(0), 1)],
        ..JobSubmitted::default()
    };
    let claimed = journal::submit(&*store, submitted, &Plans::default(), NOW).unwrap();
    let mut event_loop = EventLoop::new(&services);
    event_loop.add(claimed, Secrets::default(), Box::new(NoJobObserver));
    while event_loop.poll() {}
    let (start, notifier) = machine.called.lock().unwrap().pop().unwrap();
    // Another process writes, so breakers are read again when an attempt asks them; the breaker of the next
    // command cannot be read.
    breakers::change(&*store, "one", |_| Some(BreakerFact::Reset { at: NOW })).unwrap();
    machine.millis.store(1000, Ordering::SeqCst);
    store.fails.store(true, Ordering::SeqCst);
    notifier.send(ExecutorMessage::Ended(Box::new(AttemptEnd {
        start: StartId(start),
        ..AttemptEnd::default()
    })));
    while event_loop.poll() {}
    let left = event_loop.take_finished();
    assert!(matches!(left.as_slice(), [(_, Err(_))]));
    store.fails.store(false, Ordering::SeqCst);
    let replayed = journal::load(&*store, "job", &Plans::default()).unwrap();
    let known = StoredJob::read(&*store, "job", &Plans::default()).unwrap();
    assert_eq!(known.job.save(), replayed.save());
}
