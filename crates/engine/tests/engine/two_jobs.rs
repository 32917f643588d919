//! Jobs that share breakers: a small model of a store that refuses whoever was slower, and of drivers
//! that put together again what was refused. Whatever the order of starts, ends, deaths and looks, no
//! start is recorded that its breaker did not let through, and everything goes on when all is well.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use undaunted_engine::breaker::{BreakerRecord, BreakerState, Told};
use undaunted_engine::decide::react;
use undaunted_engine::effect::{next_wake, ready};
use undaunted_engine::event::{Event, NewItem, Pass, Record};
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::{Job, Stage};
use undaunted_engine::law::{broken_by, broken_in};
use undaunted_engine::workflow::Operator;
use undaunted_policy::{Cause, Phase, Ticket, Timestamp};

use crate::scene::{T0, changed_by, digest, reread, submitted};

/// What is written together.
#[derive(Clone, Default)]
struct Batch {
    records: Vec<Record>,
    told: Vec<Told>,
    changes: Vec<(Arc<str>, BreakerRecord)>,
    /// The versions of breakers it was put together from.
    after: BTreeMap<Arc<str>, u64>,
}

/// One job and whoever runs it.
pub(crate) struct Driver {
    pub(crate) job: Job,
    /// What is on the disk, and what that comes to.
    pub(crate) journal: Vec<Record>,
    found: Job,
    /// What starts on the disk were let through with.
    passes: BTreeMap<u64, (String, Ticket)>,
    /// Batches under way, the oldest first, and the one that is being put together.
    batches: VecDeque<Batch>,
    pending: Batch,
    /// The versions of breakers it knows.
    known: BTreeMap<Arc<str>, u64>,
    /// Attempts that have begun and not ended.
    pub(crate) begun: BTreeSet<u64>,
}

/// Breakers as they are kept, with their versions.
pub(crate) type Kept = BTreeMap<Arc<str>, (u64, BreakerState)>;

pub(crate) struct World {
    pub(crate) kept: Kept,
    pub(crate) drivers: Vec<Driver>,
    pub(crate) now: Timestamp,
}

impl Driver {
    fn of(number: usize, text: &str, items: u32) -> Self {
        let id = format!("job{number}");
        let seed = u64::try_from(number).unwrap() << 56;
        let record = submitted(&id, text, seed, &Operator::default());
        let mut driver = Self {
            job: Job::begin(&record).unwrap(),
            found: Job::begin(&record).unwrap(),
            journal: vec![record],
            passes: BTreeMap::new(),
            batches: VecDeque::new(),
            pending: Batch::default(),
            known: BTreeMap::new(),
            begun: BTreeSet::new(),
        };
        driver.decide(&Input::Woke, T0);
        let items = (0..items).map(|number| NewItem {
            identity: format!("a{number}"),
            input: "null".to_owned(),
        });
        let items = items.collect();
        driver.decide(&Input::ItemsRead { step: 0, items }, T0);
        driver
    }

    fn decide(&mut self, input: &Input, now: Timestamp) {
        let records = react(&mut self.job, input, now);
        self.pending.records.extend(records);
        let (told, changes) = self.job.breakers_mut().take();
        self.pending.told.extend(told);
        self.pending.changes.extend(changes);
    }

    /// Starts what is ready, and holds what is not, until nothing more changes.
    pub(crate) fn start(&mut self, now: Timestamp) {
        for _ in 0..100 {
            let before = self.pending.records.len();
            for (step, item) in ready(&self.job, now) {
                let input = Input::Start {
                    step,
                    item,
                    refused: None,
                };
                self.decide(&input, now);
            }
            if self.pending.records.len() == before {
                return;
            }
        }
        panic!("it never has enough: {}", digest(&self.job));
    }

    /// What was put together is under way.
    fn hand_over(&mut self) {
        if self.pending.records.is_empty() {
            return;
        }
        let mut batch = std::mem::take(&mut self.pending);
        let touched: BTreeSet<&Arc<str>> = batch.told.iter().map(Told::breaker).collect();
        let mut after = BTreeMap::new();
        for name in touched {
            let version = self.known.get(name).copied().unwrap_or_default();
            let changes = batch.changes.iter().filter(|(of, _)| of == name).count();
            after.insert(Arc::clone(name), version);
            let reaches = version + u64::try_from(changes).unwrap();
            self.known.insert(Arc::clone(name), reaches);
        }
        batch.after = after;
        self.batches.push_back(batch);
    }

    /// Reads every breaker that has changed since it was last read.
    fn meet(&mut self, kept: &Kept, now: Timestamp) {
        let names: Vec<Arc<str>> = self.job.breakers().names().cloned().collect();
        for name in names {
            let (version, state) = &kept[&name];
            if self.known.insert(Arc::clone(&name), *version) != Some(*version) {
                self.job.learn(&name, state.clone(), now);
            }
        }
    }

    /// Others were faster: what was not written is put together again.
    fn overtaken(&mut self, kept: &Kept, now: Timestamp) {
        let mut all = Batch::default();
        let pending = std::mem::take(&mut self.pending);
        for batch in std::mem::take(&mut self.batches)
            .into_iter()
            .chain([pending])
        {
            all.records.extend(batch.records);
            all.told.extend(batch.told);
        }
        self.known.clear();
        self.meet(kept, now);
        all.records = self.job.redo(all.records, all.told);
        (all.told, all.changes) = self.job.breakers_mut().take();
        self.pending = all;
        let started = self.journal.iter().chain(&self.pending.records);
        let started: BTreeSet<u64> = started.filter_map(start_of).map(|(it, _)| it).collect();
        for start in self.job.running.keys() {
            assert!(started.contains(start), "{start} was withdrawn and runs");
        }
    }

    /// Whether all it knows is on the disk.
    fn is_written(&self) -> bool {
        self.batches.is_empty() && self.pending.records.is_empty()
    }

    fn speaks(&self) -> bool {
        let batches = self.batches.iter().chain([&self.pending]);
        batches.into_iter().any(|batch| !batch.told.is_empty())
    }

    /// What a process finds that reads the journal.
    fn refolded(&self) -> Job {
        let mut job = Job::begin(&self.journal[0]).unwrap();
        for record in &self.journal[1..] {
            job.apply(record);
        }
        job
    }
}

/// What the journal of a driver comes to. What was withdrawn has used up its number.
fn known(driver: &Driver) -> String {
    let mut found = driver.found.clone();
    assert!(driver.job.next_start >= found.next_start);
    found.next_start = driver.job.next_start;
    digest(&found)
}

pub(crate) fn start_of(record: &Record) -> Option<(u64, Option<&Pass>)> {
    match &record.event {
        Event::AttemptStarted(started) => Some((started.start, started.pass.as_ref())),
        _ => None,
    }
}

impl World {
    pub(crate) fn of(jobs: &[(String, u32)]) -> Self {
        let drivers = (0..).zip(jobs);
        let drivers = drivers.map(|(number, (text, items))| Driver::of(number, text, *items));
        let mut world = Self {
            kept: BTreeMap::new(),
            drivers: drivers.collect(),
            now: T0,
        };
        for driver in &world.drivers {
            for name in driver.job.breakers().names() {
                let state = driver.job.breakers().get(name).unwrap().clone();
                world.kept.insert(Arc::clone(name), (1, state));
            }
        }
        for which in 0..world.drivers.len() {
            world.look(which);
            world.flush(which);
        }
        world
    }

    /// The store takes the oldest batch of a driver, or refuses it.
    fn store(&mut self, which: usize) {
        let now = self.now;
        let driver = &mut self.drivers[which];
        driver.hand_over();
        let Some(batch) = driver.batches.front() else {
            return;
        };
        let current = batch
            .after
            .iter()
            .all(|(name, at)| self.kept[name].0 == *at);
        if !current {
            driver.overtaken(&self.kept, now);
            return;
        }
        let batch = driver.batches.pop_front().unwrap();
        self.accept(which, batch);
        self.check(which);
    }

    /// What was refused is put together again until it is taken.
    pub(crate) fn flush(&mut self, which: usize) {
        for _ in 0..100 {
            self.store(which);
            if self.drivers[which].is_written() {
                return;
            }
        }
        panic!("it is never taken");
    }

    fn accept(&mut self, which: usize, batch: Batch) {
        let driver = &mut self.drivers[which];
        let id = driver.job.id().to_owned();
        // No start is recorded that the breaker, as it is kept, does not let through.
        for name in batch.after.keys() {
            let (version, kept) = self.kept.get_mut(name).unwrap();
            let mut state = kept.clone();
            let told = batch.told.iter().filter(|told| told.breaker() == name);
            let expected: Vec<BreakerRecord> = told
                .filter_map(|told| changed_by(&mut state, &id, told))
                .collect();
            let written = batch.changes.iter().filter(|(of, _)| of == name);
            let written: Vec<BreakerRecord> = written.map(|(_, it)| reread(it)).collect();
            assert_eq!(written, expected, "of {id}");
            *version += u64::try_from(written.len()).unwrap();
            *kept = state;
        }
        let passed = batch.records.iter().filter_map(start_of);
        let passed = passed.filter_map(|(start, pass)| Some((start, pass?.ticket())));
        let told = batch.told.iter().filter_map(|told| match told {
            Told::Started { start, ticket, .. } => Some((*start, *ticket)),
            Told::Ended { .. } => None,
        });
        assert!(passed.eq(told), "every start is told, and no other");
        for record in &batch.records {
            let read = Record::decode(&record.encode()).unwrap();
            assert_eq!(&read, record);
            assert_eq!(broken_by(&driver.found, record), [], "of {id}");
            driver.found.apply(record);
            if let Some((start, pass)) = start_of(record) {
                driver.begun.insert(start);
                if let Some(pass) = pass {
                    let name = driver.found.texts.read(&pass.breaker).to_owned();
                    driver.passes.insert(start, (name, pass.ticket()));
                }
            }
        }
        assert_eq!(broken_in(&driver.found), [], "of {id}");
        driver.journal.extend(batch.records);
    }

    fn check(&self, which: usize) {
        let driver = &self.drivers[which];
        if driver.is_written() {
            assert_eq!(known(driver), digest(&driver.job));
        }
        for (name, (_, state)) in &self.kept {
            let probes = self.probes(name, state);
            assert!(probes <= 1, "{probes} probes of {name}");
            if let Phase::HalfOpen { probing, .. } = state.breaker.phase() {
                assert_eq!(probing, probes == 1, "{state:?}");
            }
        }
    }

    /// Probes that are on record and have no result there.
    fn probes(&self, name: &str, state: &BreakerState) -> usize {
        let drivers = self.drivers.iter();
        let running = drivers.flat_map(|driver| {
            let starts = driver.found.running.keys();
            starts.filter_map(|start| driver.passes.get(start))
        });
        let probes = running.filter(|(of, ticket)| {
            of == name && ticket.probe && ticket.generation() == state.breaker.generation()
        });
        probes.count()
    }

    pub(crate) fn end(&mut self, which: usize, attempt: usize, failure: Option<Cause>) {
        let now = self.now;
        let driver = &mut self.drivers[which];
        let begun: Vec<u64> = driver.begun.iter().copied().collect();
        let Some(&start) = begun.get(attempt % begun.len().max(1)) else {
            return;
        };
        driver.begun.remove(&start);
        let end = AttemptEnd {
            start,
            failure,
            ..AttemptEnd::default()
        };
        driver.decide(&Input::Ended(Box::new(end)), now);
    }

    /// Whoever runs a job dies; what was under way is written or not, and somebody goes on.
    fn crash(&mut self, which: usize, written: bool) {
        if written && !self.drivers[which].batches.is_empty() {
            self.store(which);
        }
        let now = self.now;
        let driver = &mut self.drivers[which];
        driver.batches.clear();
        driver.pending = Batch::default();
        driver.job = driver.refolded();
        assert_eq!(digest(&driver.job), digest(&driver.found));
        driver.begun = driver.job.running.keys().copied().collect();
        driver.known.clear();
        driver.meet(&self.kept, now);
        driver.decide(&Input::Resume { seen: None }, now);
        self.flush(which);
    }

    /// It is left in good order, if it can be, and gone on with.
    fn suspend(&mut self, which: usize) {
        self.flush(which);
        let now = self.now;
        self.drivers[which].decide(&Input::Suspend, now);
        self.flush(which);
        if self.drivers[which].job.stage == Stage::Suspended {
            self.crash(which, true);
        }
    }

    pub(crate) fn look(&mut self, which: usize) {
        let driver = &mut self.drivers[which];
        if !driver.speaks() {
            driver.meet(&self.kept, self.now);
        }
    }

    pub(crate) fn by_hand(&mut self, trip: bool) {
        for (version, state) in self.kept.values_mut() {
            let _ = if trip {
                state.trip(self.now)
            } else {
                state.reset()
            };
            *version += 1;
        }
    }

    fn happen(&mut self, which: usize, happening: &Happening) {
        let which = which % self.drivers.len();
        let now = self.now;
        let driver = &mut self.drivers[which];
        match *happening {
            Happening::Start => driver.start(now),
            Happening::End(attempt, cause) => self.end(which, attempt, cause),
            Happening::HandOver => driver.hand_over(),
            Happening::Store => self.store(which),
            Happening::Pass(millis) => self.now = now.after(Duration::from_millis(millis)),
            Happening::Wake => driver.decide(&Input::Woke, now),
            Happening::Look => self.look(which),
            Happening::Crash(written) => self.crash(which, written),
            Happening::ByHand(trip) => self.by_hand(trip),
            Happening::Cancel => driver.decide(&Input::Cancel, now),
            Happening::Redrive => {
                let items = driver.job.dead.keys().copied().collect();
                let reduce = false;
                driver.decide(&Input::Redrive { items, reduce }, now);
            }
            Happening::Suspend => self.suspend(which),
        }
    }

    /// From here on everything succeeds: all jobs end, and nothing stays held.
    pub(crate) fn heal(&mut self) {
        for _ in 0..3000 {
            let mut quiet = true;
            for which in 0..self.drivers.len() {
                self.flush(which);
                self.look(which);
                let now = self.now;
                let driver = &mut self.drivers[which];
                driver.decide(&Input::Woke, now);
                driver.start(now);
                self.flush(which);
                while !self.drivers[which].begun.is_empty() {
                    quiet = false;
                    self.end(which, 0, None);
                    self.flush(which);
                }
            }
            if self.drivers.iter().all(|it| it.job.stage.has_ended()) {
                break;
            }
            if quiet {
                let drivers = self.drivers.iter();
                let wakes = drivers.filter_map(|it| next_wake(&it.job, self.now));
                let ready = |it: &Driver| !ready(&it.job, self.now).is_empty();
                match wakes.min() {
                    Some(next) => self.now = self.now.max(next),
                    None if self.drivers.iter().any(ready) => {}
                    None => self.now = self.now.after(Duration::from_secs(1)),
                }
            }
        }
        for driver in &self.drivers {
            let job = &driver.job;
            assert!(job.stage.has_ended(), "{}", digest(job));
            assert!(job.steps.iter().all(|step| step.held.is_empty()));
            assert!(job.running.is_empty());
        }
    }
}

/// Something that happens to one of the jobs.
#[derive(Clone, Debug)]
enum Happening {
    Start,
    End(usize, Option<Cause>),
    HandOver,
    Store,
    Pass(u64),
    Wake,
    Look,
    Crash(bool),
    ByHand(bool),
    Cancel,
    Redrive,
    Suspend,
}

fn happening() -> impl Strategy<Value = Happening> {
    let cause = prop_oneof![
        3 => Just(None),
        6 => Just(Some(Cause::Exit(1))),
        1 => Just(Some(Cause::Exit(3))),
        1 => Just(Some(Cause::Exit(127))),
        1 => Just(Some(Cause::Interrupted)),
    ];
    prop_oneof![
        16 => Just(Happening::Start),
        24 => (any::<usize>(), cause).prop_map(|(which, cause)| Happening::End(which, cause)),
        5 => Just(Happening::HandOver),
        20 => Just(Happening::Store),
        6 => (0_u64..4000).prop_map(Happening::Pass),
        4 => Just(Happening::Wake),
        5 => Just(Happening::Look),
        3 => any::<bool>().prop_map(Happening::Crash),
        1 => any::<bool>().prop_map(Happening::ByHand),
        1 => Just(Happening::Cancel),
        3 => Just(Happening::Redrive),
        1 => Just(Happening::Suspend),
    ]
    .boxed()
}

/// A job whose commands ask breakers that others ask too.
fn job() -> impl Strategy<Value = (String, u32)> {
    let limits = prop_oneof![
        2 => Just(""),
        1 => Just("retry_budget: 4\nretry_budget_per_workflow: 2\n"),
        1 => Just("deadline: 40s\n"),
    ];
    let map = prop_oneof![
        4 => Just(""),
        1 => Just("  error_policy: {max_failures: 1}\n"),
        1 => Just("  best_effort: true\n  best_effort_min_dcs: 2\n"),
        1 => Just("  best_effort: true\n  on_complete: leave\n"),
        1 => Just("  timeout_config: {agent_timeout_secs: 9}\n"),
    ];
    let first = prop_oneof![
        3 => Just("{name: payments, failure_threshold: 2, recovery_timeout: 5s, half_open_max_calls: 2}"),
        1 => Just("{name: mail, failure_threshold: 2, recovery_timeout: 3s, when_open: fail}"),
        1 => Just("{name: stock, failure_threshold: 1, recovery_timeout: 4s, max_hold: 3s}"),
    ];
    let delay = prop_oneof![Just("0s"), Just("1s")];
    (limits, map, first, delay, 1_u32..4, 1_u32..5, any::<bool>()).prop_map(
        |(limits, map, first, delay, width, items, second)| {
            let retry = format!(
                "retry_config: {{attempts: 4, backoff: fixed, initial_delay: {delay}, rules: [{{exit_code: 3, then: hold}}]}}"
            );
            let second = if second {
                format!("    - {{shell: b, {retry}, breaker: {{name: payments, failure_threshold: 2, recovery_timeout: 5s, half_open_max_calls: 2}}}}\n")
            } else {
                String::new()
            };
            let text = format!(
                "{limits}mode: mapreduce\nmap:\n  input: a\n  max_parallel: {width}\n{map}  agent_template:\n    - {{shell: a, {retry}, breaker: {first}}}\n{second}"
            );
            (text, items)
        },
    )
    .boxed()
}

proptest! {
    #[test]
    fn jobs_that_share_breakers_never_start_what_these_do_not_let_through_and_all_end(
        jobs in vec(job(), 2..4),
        happenings in vec((0_usize..3, happening()), 0..100),
    ) {
        let mut world = World::of(&jobs);
        for (which, happening) in &happenings {
            world.happen(*which, happening);
        }
        world.heal();
    }
}
