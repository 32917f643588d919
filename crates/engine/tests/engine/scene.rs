//! A job on a virtual clock, told one thing at a time. Every record it gives is checked against the
//! laws, and encoded and decoded on its way into the journal.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use undaunted_engine::breaker::{BreakerRecord, BreakerState, Breakers, Told};
use undaunted_engine::decide::react;
use undaunted_engine::effect::{next_wake, ready, wanted};
use undaunted_engine::event::{Event, NewItem, Record};
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::{Active, Doing, Item, Job, Plans, Stage};
use undaunted_engine::law::{broken_by, broken_in};
use undaunted_engine::submission::{Surroundings, submission};
use undaunted_engine::task::{Files, TaskWork, task};
use undaunted_engine::view::{Report, report};
use undaunted_engine::workflow::{Operator, Source, check};
use undaunted_policy::{Admission, Cause, Reason, Timestamp};

use crate::spoken::{said, wished};

/// When every job of these tests is submitted.
pub(crate) const T0: Timestamp = Timestamp::from_millis(1_700_000_000_000);

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// So many seconds after the submission.
pub(crate) fn at(seconds: u64) -> Timestamp {
    T0.after(Duration::from_secs(seconds))
}

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A job, its journal and its breakers as they are on the disk, and the time.
#[derive(Clone)]
pub(crate) struct Scene {
    pub(crate) job: Job,
    pub(crate) journal: Vec<Vec<u8>>,
    /// How many records it had after each thing it was told: those of one decision are written together.
    pub(crate) written: Vec<usize>,
    pub(crate) breakers: BTreeMap<Arc<str>, BreakerState>,
    pub(crate) now: Timestamp,
    plans: Arc<Plans>,
}

impl Scene {
    /// A job that was submitted and has begun.
    pub(crate) fn of(text: &str) -> Self {
        Self::seeded(text, 7)
    }

    pub(crate) fn seeded(text: &str, seed: u64) -> Self {
        Self::with(text, seed, &Operator::default())
    }

    pub(crate) fn with(text: &str, seed: u64, operator: &Operator) -> Self {
        let record = submitted("7f3k", text, seed, operator);
        let mut scene = Self {
            job: Job::begin(&record).unwrap(),
            journal: vec![record.encode()],
            written: vec![1],
            breakers: BTreeMap::new(),
            now: T0,
            plans: Arc::default(),
        };
        let _ = scene.tell(&Input::Woke);
        scene
    }

    /// A map over these items, once they are known.
    pub(crate) fn over(text: &str, items: u32) -> Self {
        let mut scene = Self::of(text);
        scene.items(items);
        scene
    }

    /// The items of the first map are known: `a0`, `a1` and so on.
    pub(crate) fn items(&mut self, count: u32) {
        let items = (0..count).map(|number| NewItem {
            identity: format!("a{number}"),
            input: format!("{{\"id\":\"a{number}\",\"n\":{number}}}"),
        });
        let step = self.map_step();
        let _ = self.tell(&Input::ItemsRead {
            step,
            items: items.collect(),
        });
    }

    pub(crate) fn map_step(&self) -> u32 {
        let mut steps = (0_u32..).zip(&self.job.steps);
        let map = steps.find(|(step, _)| self.job.plan().is_map(*step));
        map.map_or(0, |(step, _)| step)
    }

    /// Tells the job something now. What follows keeps every law, and is on the disk.
    pub(crate) fn tell(&mut self, input: &Input) -> Vec<Record> {
        let mut before = self.job.clone();
        let records = react(&mut self.job, input, self.now);
        for record in &records {
            let bytes = record.encode();
            let read = Record::decode(&bytes).unwrap();
            assert_eq!(&read, record);
            assert_eq!(broken_by(&before, &read), [], "{input:?}");
            before.apply(&read);
            assert_eq!(broken_in(&before), [], "after {record:?}");
            self.journal.push(bytes);
        }
        assert_eq!(
            digest(&before),
            digest(&self.job),
            "a decoded record differs"
        );
        let items = self.job.steps.iter().flat_map(|step| step.items.iter());
        let undecided = |item: &Item<'_>| matches!(item, Item::Active(active) if active.doing == Doing::Undecided);
        let left = items.filter(|(_, item)| undecided(item)).count();
        assert_eq!(left, 0, "a decision was not finished");
        self.can_be_saved();
        self.keep_breakers(before.breakers());
        self.written.push(self.journal.len());
        records
    }

    /// The job is the same after it was saved and restored.
    fn can_be_saved(&self) {
        let saved = self.job.save();
        let restored = Job::restore(&saved, &self.plans).unwrap();
        assert_eq!(digest(&restored), digest(&self.job));
        assert_eq!(broken_in(&restored), []);
        assert_eq!(restored.save(), saved);
    }

    /// What changes breakers is on the disk too, and no start was made that they do not let through.
    fn keep_breakers(&mut self, before: &Breakers) {
        let id = self.job.id().to_owned();
        let (told, changes) = self.job.breakers_mut().take();
        let after = self.job.breakers();
        for name in after.names() {
            let mut state = before.get(name).unwrap().clone();
            let own = told.iter().filter(|told| told.breaker() == name);
            let expected: Vec<BreakerRecord> = own
                .filter_map(|told| changed_by(&mut state, &id, told))
                .collect();
            assert_eq!(after.get(name), Some(&state), "{told:?}");
            let written = changes.iter().filter(|(of, _)| of == name);
            let written: Vec<BreakerRecord> = written.map(|(_, record)| reread(record)).collect();
            assert_eq!(written, expected);
            if let Some(last) = written.last() {
                let _ = self.breakers.insert(Arc::clone(name), last.state.clone());
            }
        }
    }

    /// The same, in words.
    pub(crate) fn hear(&mut self, input: &Input) -> Vec<String> {
        said(&self.tell(input))
    }

    /// It is so many seconds after the submission.
    pub(crate) fn at(&mut self, seconds: u64) -> &mut Self {
        self.now = at(seconds);
        self
    }

    /// So much time passes.
    pub(crate) fn pass(&mut self, time: Duration) -> &mut Self {
        self.now = self.now.after(time);
        self
    }

    pub(crate) fn ready(&self) -> Vec<(u32, u32)> {
        ready(&self.job, self.now)
    }

    pub(crate) fn next_wake(&self) -> Option<Timestamp> {
        next_wake(&self.job, self.now)
    }

    pub(crate) fn wanted(&self) -> Vec<String> {
        wished(&wanted(&self.job))
    }

    /// Starts what is ready, as a runner does; what it cannot put together is refused.
    pub(crate) fn start(&mut self) -> Vec<Record> {
        let mut records = Vec::new();
        for (step, item) in self.ready() {
            let made = task(&self.job, step, item, Files::default(), self.now);
            if let Ok(Some(made)) = &made {
                self.aim(step, item, &made.work);
            }
            let refused = made.err().map(|why| why.to_string());
            records.extend(self.tell(&Input::Start {
                step,
                item,
                refused,
            }));
        }
        records
    }

    /// A request asks the breaker of where it goes.
    fn aim(&mut self, step: u32, item: u32, work: &TaskWork) {
        let TaskWork::Call(call) = work else { return };
        let origin = call
            .url
            .splitn(4, '/')
            .take(3)
            .collect::<Vec<_>>()
            .join("/");
        let active = self.job.active(step, item).map(|active| active.command);
        let command = active.or_else(|| self.job.plan().first(step)).unwrap();
        let breaker = self.job.plan().command(command).unwrap().breaker.as_ref();
        let settings = breaker.unwrap().settings;
        self.job.aim(step, item, &origin, settings);
    }

    /// The number of the start that runs for an item of the step that is at work.
    pub(crate) fn start_of(&self, item: u32) -> u64 {
        let mut running = self.job.running.iter();
        let found = running.find(|(_, (_, of))| *of == item);
        *found
            .unwrap_or_else(|| panic!("item {item} does not run"))
            .0
    }

    pub(crate) fn end(&mut self, end: AttemptEnd) -> Vec<Record> {
        self.tell(&Input::Ended(Box::new(end)))
    }

    /// The attempt of an item fails, and says nothing.
    pub(crate) fn fail(&mut self, item: u32, cause: Cause) -> Vec<Record> {
        self.fail_saying(item, cause, "")
    }

    pub(crate) fn fail_saying(&mut self, item: u32, cause: Cause, error: &str) -> Vec<Record> {
        self.end(AttemptEnd {
            start: self.start_of(item),
            failure: Some(cause),
            took: Duration::from_millis(1500),
            error: error.to_owned(),
            stderr_end: error.to_owned(),
            ..AttemptEnd::default()
        })
    }

    pub(crate) fn succeed(&mut self, item: u32) -> Vec<Record> {
        self.succeed_writing(item, None)
    }

    pub(crate) fn succeed_writing(&mut self, item: u32, output: Option<&str>) -> Vec<Record> {
        self.end(AttemptEnd {
            start: self.start_of(item),
            output: output.map(str::to_owned),
            ..AttemptEnd::default()
        })
    }

    /// The only item fails with exit status 1, waits and is started again, until it stops.
    /// What is left is the records of the failure that ended it.
    pub(crate) fn fail_until_it_stops(&mut self) -> Vec<Record> {
        for _ in 0..1000 {
            let _ = self.start();
            let records = self.fail(0, Cause::Exit(1));
            match self.next_wake() {
                Some(due) if self.job.stage == Stage::Running => self.now = due,
                _ => return records,
            }
            if self.ready().is_empty() {
                return records;
            }
        }
        panic!("it does not stop");
    }

    /// What a process finds that reads the journal: nothing else survives a crash.
    pub(crate) fn refolded(&self) -> Job {
        let mut job = fold(&self.journal);
        for (name, state) in &self.breakers {
            job.learn(name, state.clone(), self.now);
        }
        job
    }

    /// Whoever ran it dies, and somebody else goes on with it now.
    pub(crate) fn crash_and_resume(&mut self) -> Vec<Record> {
        self.job = self.refolded();
        self.tell(&Input::Resume { seen: None })
    }

    pub(crate) fn report(&self) -> Report {
        report(&self.job)
    }

    pub(crate) fn active(&self, item: u32) -> &Active {
        let mut steps = self.job.steps.iter();
        let active = steps.find_map(|step| step.items.active(item));
        active.unwrap_or_else(|| panic!("item {item} is not active"))
    }

    /// The items that are held, in input order.
    pub(crate) fn held(&self) -> Vec<u32> {
        let steps = self.job.steps.iter();
        steps.flat_map(|step| step.held.items()).collect()
    }

    /// The breaker of that name.
    pub(crate) fn breaker(&self, name: &str) -> &BreakerState {
        self.job.breakers().get(name).unwrap()
    }

    /// Attempts, retries and delays, as the report has them.
    pub(crate) fn counted(&self) -> (u64, u64, Duration) {
        let counts = self.job.tally();
        (counts.attempts, counts.retries, counts.delay)
    }

    /// Status and reason of the job, and its items: succeeded, dead, skipped.
    pub(crate) fn came_to(&self) -> (&'static str, Option<Reason>, [u64; 3]) {
        let report = self.report();
        let counts = report.counts;
        let items = [counts.succeeded, counts.dead, counts.skipped];
        (report.status.word(), report.reason, items)
    }
}

/// The submission of a job.
pub(crate) fn submitted(job: &str, text: &str, seed: u64, operator: &Operator) -> Record {
    let source = Source::new("w.yaml", text);
    let checked = check(&source, operator);
    let found = &checked.diagnostics;
    let workflow = checked.workflow.as_ref();
    let workflow = workflow.unwrap_or_else(|| panic!("{found:?}\n{text}"));
    let around = Surroundings {
        job: job.to_owned(),
        file: "/w/w.yaml".to_owned(),
        working_dir: "/w".to_owned(),
        seed,
        operator,
        variable: &|name| (name == "HOME").then(|| "/h/me".to_owned()),
        release: "0.1.0".to_owned(),
        flow: None,
        token_key: None,
    };
    let submitted = submission(workflow, text, around).unwrap();
    Record {
        at: T0,
        event: Event::JobSubmitted(Box::new(submitted)),
    }
}

/// What a breaker makes of what it is told. A start is made only if it lets it through.
pub(crate) fn changed_by(
    state: &mut BreakerState,
    job: &str,
    told: &Told,
) -> Option<BreakerRecord> {
    let (at, change) = match told {
        Told::Started { ticket, at, .. } => {
            let admission = state.admission(*at);
            assert_eq!(admission, Admission::Go(*ticket), "{told:?} of {state:?}");
            (*at, state.start(job, *ticket, *at)?)
        }
        Told::Ended {
            ticket, signal, at, ..
        } => (*at, state.report(*ticket, *signal, *at)?),
    };
    Some(BreakerRecord {
        at,
        change,
        job: Some(job.to_owned()),
        state: state.clone(),
    })
}

/// A record of a breaker after it was on the disk.
pub(crate) fn reread(record: &BreakerRecord) -> BreakerRecord {
    let read = BreakerRecord::decode(&record.encode()).unwrap();
    assert_eq!(&read, record);
    read
}

/// The job these records are.
pub(crate) fn fold(journal: &[Vec<u8>]) -> Job {
    let mut records = journal.iter().map(|bytes| Record::decode(bytes).unwrap());
    let mut job = Job::begin(&records.next().unwrap()).unwrap();
    records.for_each(|record| job.apply(&record));
    job
}

/// Everything that a job is and that its workflow does not say.
pub(crate) fn digest(job: &Job) -> String {
    format!(
        "{:?} {:?} {:?} {:?} {:?} {} {} {} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} \
         {:?} {:?} {:?} {:?}",
        job.submitted_at,
        job.last_at,
        job.run_until,
        job.resumed_at,
        job.stage,
        job.rounds,
        job.run,
        job.next_start,
        job.steps,
        job.running,
        job.accepted,
        job.attributes,
        job.texts,
        job.imported,
        job.pool,
        job.counts,
        job.scope,
        job.stopped,
        job.failure,
        job.recovered,
        job.paused,
        job.dead
    )
}
