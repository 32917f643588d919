//! A job on a virtual clock, told one thing at a time. Every record it gives is checked against the
//! laws, and encoded and decoded on its way into the journal. Reports of the job go to the admission of
//! the process, and their facts into the journals of the breakers, as a runner does it.

use std::sync::Arc;
use std::time::Duration;

use undaunted_engine::breaker::{
    AdmissionControl, BreakerAnswer, BreakerFact, BreakerRecord, BreakerReport, BreakerState, ProbeOwner,
};
use undaunted_engine::decide::{Reaction, react};
use undaunted_engine::effect::{ask, next_admission, next_wake, offers, ready, wanted};
use undaunted_engine::event::{Event, JobEvent, NewItem, Record};
use undaunted_engine::id::{CommandId, ItemId, StartId, StepId};
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::{ActiveItem, Activity, ItemState, Job, JobStage, Plans};
use undaunted_engine::law::{violations_by_record, violations_in_state};
use undaunted_engine::plan::Plan;
use undaunted_engine::submission::{SubmissionContext, submission};
use undaunted_engine::task::{TaskWork, ValueFiles, task};
use undaunted_engine::view::{JobReport, report};
use undaunted_engine::workflow::{Operator, Source, check};
use undaunted_policy::{Admission as Answer, BreakerSettings, FailureCause, Reason, Timestamp};

use crate::journals::Journals;
use crate::spoken::{said, turn, wished};

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

/// A job, its journal and those of its breakers as they are on the disk, the admission of the process
/// that runs it, and the time.
#[derive(Clone)]
pub(crate) struct Scene {
    pub(crate) job: Job,
    pub(crate) journal: Vec<Vec<u8>>,
    /// How many records it had after each thing it was told: those of one decision are written together.
    pub(crate) written: Vec<usize>,
    pub(crate) admission: AdmissionControl,
    pub(crate) breakers: Journals,
    pub(crate) now: Timestamp,
    /// The latest time so far, and whether the clock was set back since.
    latest: Timestamp,
    is_set_back: bool,
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
        Self::submitted(&submitted("7f3k", text, seed, operator))
    }

    /// The job of a submission.
    pub(crate) fn submitted(record: &Record) -> Self {
        let mut scene = Self {
            job: Job::begin(record).unwrap(),
            journal: vec![record.encode()],
            written: vec![1],
            admission: AdmissionControl::default(),
            breakers: Journals::default(),
            now: record.at,
            latest: record.at,
            is_set_back: false,
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
        let _ = self.tell(&Input::ItemsRead { step, items: items.collect() });
    }

    pub(crate) fn map_step(&self) -> StepId {
        let mut steps = StepId::all().zip(&self.job.steps);
        let map = steps.find(|(step, _)| self.job.plan().is_map(*step));
        map.map_or(StepId(0), |(step, _)| step)
    }

    /// Tells the job something now. What follows keeps every law, and is on the disk.
    pub(crate) fn tell(&mut self, input: &Input) -> Vec<Record> {
        self.is_set_back |= self.now < self.latest;
        self.latest = self.latest.max(self.now);
        self.admission.tick(self.now);
        self.meet_breakers();
        let mut before = self.job.clone();
        let Reaction { records, reports } = react(&mut self.job, input, self.now);
        for record in &records {
            let bytes = record.encode();
            let read = Record::decode(&bytes).unwrap();
            assert_eq!(&read, record);
            assert_eq!(violations_by_record(&before, &read), [], "{input:?}");
            before.apply(&read);
            assert_eq!(violations_in_state(&before), [], "after {record:?}");
            self.journal.push(bytes);
        }
        assert_eq!(digest(&before), digest(&self.job), "a decoded record differs");
        let items = self.job.steps.iter().flat_map(|step| step.items.iter());
        let undecided = |item: &ItemState<'_>| matches!(item, ItemState::Active(active) if active.activity == Activity::Undecided);
        let left = items.filter(|(_, item)| undecided(item)).count();
        assert_eq!(left, 0, "a decision was not finished");
        self.can_be_saved();
        self.tell_breakers(&reports);
        self.written.push(self.journal.len());
        records
    }

    /// The job is the same after it was saved and restored.
    fn can_be_saved(&self) {
        let saved = self.job.save();
        let restored = Job::restore(&saved, &self.plans).unwrap();
        assert_eq!(digest(&restored), digest(&self.job));
        assert_eq!(violations_in_state(&restored), []);
        assert_eq!(restored.save(), saved);
        let longer = [saved.as_slice(), &[0]].concat();
        assert!(Job::restore(&longer, &self.plans).is_err());
    }

    /// Reads the journals of breakers that the job asks and the process does not know.
    fn meet_breakers(&mut self) {
        for name in self.job.breakers() {
            if self.admission.get(&name).is_none() {
                self.meet(&name, self.settings_of(&name));
            }
        }
    }

    /// Reads the journal of a breaker; one that has none has these settings.
    fn meet(&mut self, name: &Arc<str>, settings: BreakerSettings) {
        let journal = if self.breakers.of(name).is_empty() {
            BreakerState::with_settings(settings).into()
        } else {
            self.breakers.fold(name)
        };
        self.admission.load(name, journal);
    }

    /// What the workflow says about a breaker; one that no command names is that of an origin.
    fn settings_of(&self, name: &str) -> BreakerSettings {
        let plan = self.job.plan();
        let by_origin = CommandId::all().map_while(|number| plan.command(number));
        let mut by_origin = by_origin.filter_map(|command| command.breaker.as_deref());
        let by_origin = by_origin.find(|breaker| breaker.name.is_none());
        let named = plan.breakers().get(name).copied();
        named.unwrap_or_else(|| by_origin.unwrap().settings)
    }

    /// What the job reports is on the disk too, and no start was made that its breaker did not let
    /// through.
    fn tell_breakers(&mut self, reports: &[BreakerReport]) {
        let id = self.job.shared_id();
        for report in reports {
            if let BreakerReport::Started { breaker, ticket } = report {
                let state = self.admission.get(breaker).unwrap();
                let answer = state.admission(self.now);
                assert_eq!(answer, Answer::Go(*ticket), "{report:?} of {state:?}");
            }
            self.admission.report(&id, report);
        }
        let seq = u64::try_from(self.journal.len()).unwrap();
        let names: Vec<Arc<str>> = self.admission.names().cloned().collect();
        for name in &names {
            if let Some(record) = self.admission.seal(name, &id, seq) {
                let version = self.breakers.append(name, &record);
                assert!(self.admission.acknowledge(name, &id, seq, Some(version)));
            }
        }
        self.admission.refresh();
        for name in &names {
            self.check_breaker(name);
        }
        self.offer();
    }

    /// The process knows what the journal of a breaker comes to.
    fn check_breaker(&self, name: &str) {
        if self.breakers.of(name).is_empty() {
            return;
        }
        let (known, folded) = (self.breaker(name), self.breakers.fold(name).state);
        if self.is_set_back {
            // A process that finds a breaker open until long after now does not wait for that long.
            assert_eq!(known.word(), folded.word());
            assert_eq!(known.breaker.generation(), folded.breaker.generation());
        } else {
            assert_eq!(known, &folded, "`{name}`");
        }
    }

    /// The job says what it has waiting, and claims that are of no use are let go.
    fn offer(&mut self) {
        let offers = offers(&self.job, &self.admission);
        self.admission.set_offers(&self.job.shared_id(), &offers);
        for name in self.job.breakers() {
            if self.admission.probe_owner(&name) == ProbeOwner::Ours && !self.admission.needs_claim(&name) {
                self.admission.set_probe_owner(&name, ProbeOwner::Unclaimed);
            }
        }
    }

    /// Another job, or an operator by hand, adds facts to the journal of a breaker, and the process
    /// reads them.
    pub(crate) fn others(&mut self, name: &str, job: Option<&str>, facts: Vec<BreakerFact>) {
        let (name, at) = (Arc::from(name), self.now);
        self.latest = self.latest.max(at);
        self.admission.tick(at);
        let (known, _) = self.admission.version(&name).unwrap();
        if known == 0 {
            let settings = self.breaker(&name).settings;
            let configured = BreakerRecord::by_hand(vec![BreakerFact::Configured { at, settings }]);
            let _ = self.breakers.append(&name, &configured);
        }
        let record = BreakerRecord { job: job.map(str::to_owned), seq: job.map(|_| 1), facts };
        let _ = self.breakers.append(&name, &record);
        let unknown = self.breakers.after(&name, known);
        assert!(self.admission.extend(&name, unknown));
        self.offer();
    }

    /// An operator opens a breaker.
    pub(crate) fn trip(&mut self, name: &str) {
        self.others(name, None, vec![BreakerFact::Tripped { at: self.now }]);
    }

    /// An operator closes a breaker.
    pub(crate) fn reset(&mut self, name: &str) {
        self.others(name, None, vec![BreakerFact::Reset { at: self.now }]);
    }

    /// A submission gives a breaker other settings.
    pub(crate) fn configure(&mut self, name: &str, change: impl FnOnce(&mut BreakerSettings)) {
        let mut settings = self.breaker(name).settings;
        change(&mut settings);
        let at = self.now;
        self.others(name, None, vec![BreakerFact::Configured { at, settings }]);
    }

    /// Openings and closings since this was last asked, in words.
    pub(crate) fn turned(&mut self) -> Vec<String> {
        let turned = self.admission.take_transitions();
        turned.iter().map(|(_, change)| turn(change)).collect()
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

    /// The admission as it answers now.
    pub(crate) fn asked(&self) -> AdmissionControl {
        let mut admission = self.admission.clone();
        admission.tick(self.now);
        admission
    }

    pub(crate) fn ready(&self) -> Vec<ItemId> {
        ready(&self.job, &self.asked(), self.now)
    }

    /// When something happens by itself next: in the job, or because a breaker lets more through.
    pub(crate) fn next_wake(&self) -> Option<Timestamp> {
        let own = next_wake(&self.job, self.now);
        let opening = next_admission(&self.job, &self.asked());
        own.into_iter().chain(opening).min()
    }

    pub(crate) fn wanted(&self) -> Vec<String> {
        wished(&wanted(&self.job))
    }

    /// Starts what is ready, as a runner does; what it cannot put together is refused.
    pub(crate) fn start(&mut self) -> Vec<Record> {
        let mut records = Vec::new();
        for item in self.ready() {
            let made = task(&self.job, item, ValueFiles::default(), self.now);
            let gate = self.gate(item);
            let refused = made.err().map(|why| why.to_string());
            records.extend(self.tell(&Input::Start { item, refused, gate }));
        }
        records
    }

    /// Asks the breaker of the command that an item is about to start. Nobody else probes here, so the
    /// process has the claim whenever it needs it.
    pub(crate) fn gate(&mut self, item: ItemId) -> BreakerAnswer {
        self.admission.tick(self.now);
        let Some(name) = self.asks(item) else {
            return BreakerAnswer::NoBreaker;
        };
        if self.admission.may_probe(&name) {
            self.admission.set_probe_owner(&name, ProbeOwner::Ours);
        }
        ask(&self.job, &mut self.admission, item, &name)
    }

    /// The breaker of the command that an item is about to start: the one it names, or that of where
    /// its request goes.
    fn asks(&mut self, item: ItemId) -> Option<Arc<str>> {
        let active = self.job.active(item).map(|active| active.command);
        let command = active.or_else(|| self.job.plan().first(item.step))?;
        let breaker = self.job.plan().command(command)?.breaker.as_deref()?;
        if let Some(name) = &breaker.name {
            return Some(Arc::from(name.as_str()));
        }
        let settings = breaker.settings;
        let made = task(&self.job, item, ValueFiles::default(), self.now);
        let TaskWork::Call(call) = made.ok()??.work else {
            return None;
        };
        let origin: Vec<&str> = call.url.splitn(4, '/').take(3).collect();
        let name = Arc::from(origin.join("/"));
        if self.admission.get(&name).is_none() {
            self.meet(&name, settings);
        }
        Some(name)
    }

    /// The number of the start that runs for an item of the step that is at work.
    pub(crate) fn start_of(&self, item: u32) -> StartId {
        let mut running = self.job.starts.running.iter();
        let found = running.find(|(_, of)| of.index == item);
        *found.unwrap_or_else(|| panic!("item {item} does not run")).0
    }

    pub(crate) fn end(&mut self, end: AttemptEnd) -> Vec<Record> {
        self.tell(&Input::Ended(Box::new(end)))
    }

    /// The attempt of an item fails, and says nothing.
    pub(crate) fn fail(&mut self, item: u32, cause: FailureCause) -> Vec<Record> {
        self.fail_saying(item, cause, "")
    }

    pub(crate) fn fail_saying(&mut self, item: u32, cause: FailureCause, error: &str) -> Vec<Record> {
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
            let records = self.fail(0, FailureCause::Exit(1));
            match self.next_wake() {
                Some(due) if self.job.stage == JobStage::Running => self.now = due,
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
        fold(&self.journal)
    }

    /// Another process has read the journals.
    pub(crate) fn restart(&mut self) {
        self.job = self.refolded();
        self.admission = AdmissionControl::default();
        self.admission.tick(self.now);
        self.meet_breakers();
        self.offer();
    }

    /// The process that ran the job dies, and another one resumes it now.
    pub(crate) fn crash_and_resume(&mut self) -> Vec<Record> {
        self.restart();
        self.tell(&Input::Resume { seen: None })
    }

    /// Only so many records were written, and none of breakers.
    pub(crate) fn cut(&mut self, records: usize) {
        self.journal.truncate(records);
        self.breakers = Journals::default();
        self.now = self.refolded().times.last_at;
        (self.latest, self.is_set_back) = (self.now, false);
        self.restart();
    }

    pub(crate) fn report(&self) -> JobReport {
        report(&self.job)
    }

    pub(crate) fn active(&self, item: u32) -> &ActiveItem {
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
        let known = self.admission.get(name);
        known.unwrap_or_else(|| panic!("no breaker `{name}`"))
    }

    /// Attempts, retries and delays, as the report has them.
    pub(crate) fn counted(&self) -> (u64, u64, Duration) {
        let counts = self.job.tally();
        (counts.attempts, counts.retries, counts.delay)
    }

    /// Status and reason of the job, and its items: succeeded, dead, skipped.
    pub(crate) fn came_to(&self) -> (&'static str, Option<Reason>, [u64; 3]) {
        let report = self.report();
        let counts = report.items;
        let items = [counts.succeeded, counts.dead, counts.skipped];
        (report.status.word(), report.reason, items)
    }
}

/// The submission of a job.
pub(crate) fn submitted(job: &str, text: &str, seed: u64, operator: &Operator) -> Record {
    let source = Source::new("w.yaml", text);
    let checked = check(&source, operator);
    let found = &checked.diagnostics;
    let workflow = checked.workflow;
    let workflow = workflow.unwrap_or_else(|| panic!("{found:?}\n{text}"));
    let around = SubmissionContext {
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
    let submitted = submission(Plan::new(workflow), text, around).unwrap();
    Record { at: T0, event: Event::Job(JobEvent::Submitted(Box::new(submitted))) }
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
        job.times.submitted_at,
        job.times.last_at,
        job.times.run_until,
        job.times.resumed_at,
        job.stage,
        job.rounds,
        job.run,
        job.starts.next,
        job.steps,
        job.starts.running,
        job.starts.accepted,
        job.attributes,
        job.texts,
        job.imported,
        job.pool,
        job.counts,
        job.scope,
        job.failures.stopped,
        job.failures.failure,
        job.failures.recovered,
        job.times.paused,
        job.dead
    )
}
