//! A job on a virtual clock, for the tests of its output.

use std::sync::Arc;
use std::time::Duration;

use undaunted_engine::breaker::{AdmissionControl, BreakerAnswer, BreakerChange, BreakerReport, ProbeOwner};
use undaunted_engine::decide::{Reaction, react};
use undaunted_engine::effect::{ask_breaker, probe_offers, ready};
use undaunted_engine::event::{Event, JobEvent, NewItem, Record};
use undaunted_engine::id::{ItemId, StepId};
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::{Activity, Job};
use undaunted_engine::plan::Plan;
use undaunted_engine::submission::{SubmissionContext, submission};
use undaunted_engine::view::Projection;
use undaunted_engine::workflow::{Operator, Source, check};
use undaunted_policy::{FailureCause, Timestamp};

use super::progress::Sentences;

pub(in crate::screen) const T0: Timestamp = Timestamp::from_millis(1_700_000_000_000);

pub(in crate::screen) struct JobFixture {
    pub(in crate::screen) job: Job,
    /// At most one breaker, used by all commands.
    pub(in crate::screen) breakers: AdmissionControl,
    seq: u64,
    pub(in crate::screen) projection: Projection,
    version: u64,
    pub(in crate::screen) now: Timestamp,
    /// The progress lines by default, and with `--verbose`.
    pub(in crate::screen) lines: [String; 2],
    sentences: [Sentences; 2],
}

impl JobFixture {
    pub(in crate::screen) fn of(text: &str) -> Self {
        let source = Source::new("w.yaml", text);
        let operator = Operator::default();
        let workflow = check(&source, &operator).workflow.expect("a workflow");
        let around = SubmissionContext {
            job: "7f3k".to_owned(),
            file: "/w/w.yaml".to_owned(),
            working_dir: "/w".to_owned(),
            seed: 7,
            operator: &operator,
            variable: &|_| None,
            release: "0.1.0".to_owned(),
            flow: None,
            token_key: None,
        };
        let submitted = submission(Plan::new(workflow), text, around).expect("it can be run");
        let record = Record { at: T0, event: Event::Job(JobEvent::Submitted(Box::new(submitted))) };
        let job = Job::begin(&record).expect("a job");
        let mut fixture = Self {
            breakers: AdmissionControl::with_breakers(job.plan().breakers()),
            seq: 0,
            projection: Projection::following_all(),
            version: 1,
            job,
            now: T0,
            lines: [String::new(), String::new()],
            sentences: [Sentences::new(false), Sentences::new(true)],
        };
        fixture.projection.take(&fixture.job, 1, &record);
        fixture.feed(&Input::Woke);
        fixture
    }

    pub(in crate::screen) fn feed(&mut self, input: &Input) {
        let Reaction { records, reports } = react(&mut self.job, input, self.now);
        for record in &records {
            self.version += 1;
            self.projection.take(&self.job, self.version, record);
        }
        let turned = self.report(&reports);
        for (printed, sentences) in self.lines.iter_mut().zip(&mut self.sentences) {
            let turned = turned.iter();
            let turned = turned.map(|(name, it)| sentences.turned(&self.job, name, it));
            let mut lines: Vec<_> = turned.collect();
            lines.extend(records.iter().map(|it| sentences.of(&self.job, it)));
            for line in lines.into_iter().flatten() {
                printed.push_str(&line);
                printed.push('\n');
            }
        }
    }

    /// Reports to breakers are committed at once.
    fn report(&mut self, reports: &[BreakerReport]) -> Vec<(Arc<str>, BreakerChange)> {
        let id = self.job.shared_id();
        self.breakers.tick(self.now);
        for report in reports {
            self.breakers.report(&id, report);
            let name = report.breaker();
            self.seq += 1;
            if self.breakers.seal(name, &id, self.seq).is_some() {
                let (version, _) = self.breakers.version(name).expect("known");
                assert!(self.breakers.acknowledge(name, &id, self.seq, Some(version + 1)));
            }
        }
        self.breakers.refresh();
        let offers = probe_offers(&self.job, &self.breakers);
        self.breakers.set_offers(&id, &offers);
        self.breakers.take_transitions()
    }

    pub(in crate::screen) fn read(&mut self, step: StepId, names: &[&str]) {
        let items =
            names.iter().map(|name| NewItem { identity: (*name).to_owned(), input: format!("{name:?}") });
        let items = items.collect();
        self.feed(&Input::ItemsRead { step, items, warning: None });
    }

    pub(in crate::screen) fn start(&mut self) {
        self.breakers.tick(self.now);
        for item in ready(&self.job, &self.breakers, self.now) {
            let names: Vec<_> = self.breakers.names().cloned().collect();
            let gate = names.first().map_or(BreakerAnswer::NoBreaker, |name| {
                if self.breakers.may_probe(name) {
                    self.breakers.set_probe_owner(name, ProbeOwner::Ours);
                }
                ask_breaker(&self.job, &mut self.breakers, item, name)
            });
            self.feed(&Input::Start { item, refused: None, gate });
        }
    }

    pub(in crate::screen) fn end(&mut self, item: ItemId, error: Option<&str>) {
        self.end_with(item, error.map(|_| FailureCause::Exit(1)), error.unwrap_or_default());
    }

    pub(in crate::screen) fn end_with(&mut self, item: ItemId, failure: Option<FailureCause>, error: &str) {
        let active = self.job.active(item).expect("active");
        let Activity::Running(start) = active.activity else { panic!("not running: {active:?}") };
        self.feed(&Input::Ended(Box::new(AttemptEnd {
            start,
            failure,
            took: Duration::from_millis(1500),
            error: error.to_owned(),
            stderr_end: error.to_owned(),
            ..AttemptEnd::default()
        })));
    }

    /// Ends the first running attempt. Returns whether there was one.
    pub(in crate::screen) fn end_running(&mut self, error: Option<&str>) -> bool {
        let first = self.job.starts.running.first_key_value();
        let Some((_, &item)) = first else {
            return false;
        };
        self.end(item, error);
        true
    }

    pub(in crate::screen) fn wait(&mut self, millis: u64) {
        self.now = self.now.after(Duration::from_millis(millis));
    }
}
