//! A job on a virtual clock, for what is shown of it.

use std::sync::Arc;
use std::time::Duration;

use snapbox::{IntoData, assert_data_eq, str};
use undaunted_engine::breaker::{AdmissionControl, BreakerAnswer, BreakerChange, BreakerReport, ProbeOwner};
use undaunted_engine::decide::{Reaction, react};
use undaunted_engine::effect::{ask, offers, ready};
use undaunted_engine::event::{Event, JobEvent, NewItem, Record};
use undaunted_engine::id::{ItemId, StepId};
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::{Activity, Job};
use undaunted_engine::plan::Plan;
use undaunted_engine::submission::{SubmissionContext, submission};
use undaunted_engine::workflow::{Operator, Source, check};
use undaunted_policy::{FailureCause, Timestamp};

use crate::screen::progress::board::{Board, seen};
use crate::screen::progress::draw::Size;
use crate::screen::progress::sentences::Sentences;
use crate::screen::progress::speed::Speed;

const T0: Timestamp = Timestamp::from_millis(1_700_000_000_000);

pub(super) struct Scene {
    pub(super) job: Job,
    /// The breakers it uses: at most one, which all its commands ask.
    pub(super) breakers: AdmissionControl,
    seq: u64,
    pub(super) now: Timestamp,
    /// What is said as usual, and to whoever wants to know everything.
    pub(super) said: [String; 2],
    sentences: [Sentences; 2],
}

impl Scene {
    pub(super) fn of(text: &str) -> Self {
        let source = Source::new("w.yaml", text);
        let operator = Operator::default();
        let checked = check(&source, &operator);
        let workflow = checked.workflow.expect("a workflow");
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
        let mut scene = Self {
            breakers: AdmissionControl::with_breakers(job.plan().breakers()),
            seq: 0,
            job,
            now: T0,
            said: [String::new(), String::new()],
            sentences: [Sentences::new(false), Sentences::new(true)],
        };
        scene.tell(&Input::Woke);
        scene
    }

    pub(super) fn tell(&mut self, input: &Input) {
        let Reaction { records, reports } = react(&mut self.job, input, self.now);
        let turned = self.hear(&reports);
        for (said, sentences) in self.said.iter_mut().zip(&mut self.sentences) {
            let turned = turned.iter();
            let turned = turned.map(|(name, it)| sentences.turned(&self.job, name, it));
            let mut lines: Vec<_> = turned.collect();
            lines.extend(records.iter().map(|it| sentences.of(&self.job, it)));
            for line in lines.into_iter().flatten() {
                said.push_str(&line);
                said.push('\n');
            }
        }
    }

    /// What breakers are told is on the disk at once.
    fn hear(&mut self, reports: &[BreakerReport]) -> Vec<(Arc<str>, BreakerChange)> {
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
        let offers = offers(&self.job, &self.breakers);
        self.breakers.set_offers(&id, &offers);
        self.breakers.take_transitions()
    }

    pub(super) fn read(&mut self, step: StepId, names: &[&str]) {
        let items =
            names.iter().map(|name| NewItem { identity: (*name).to_owned(), input: format!("{name:?}") });
        let items = items.collect();
        self.tell(&Input::ItemsRead { step, items });
    }

    pub(super) fn start(&mut self) {
        self.breakers.tick(self.now);
        for item in ready(&self.job, &self.breakers, self.now) {
            let names: Vec<_> = self.breakers.names().cloned().collect();
            let gate = names.first().map_or(BreakerAnswer::NoBreaker, |name| {
                if self.breakers.may_probe(name) {
                    self.breakers.set_probe_owner(name, ProbeOwner::Ours);
                }
                ask(&self.job, &mut self.breakers, item, name)
            });
            self.tell(&Input::Start { item, refused: None, gate });
        }
    }

    pub(super) fn end(&mut self, item: ItemId, error: Option<&str>) {
        let active = self.job.active(item).expect("active");
        let Activity::Running(start) = active.activity else { panic!("it runs: {active:?}") };
        self.tell(&Input::Ended(Box::new(AttemptEnd {
            start,
            failure: error.map(|_| FailureCause::Exit(1)),
            error: error.unwrap_or_default().to_owned(),
            ..AttemptEnd::default()
        })));
    }

    /// Ends the first attempt that runs; whether there was one.
    pub(super) fn end_running(&mut self, error: Option<&str>) -> bool {
        let first = self.job.starts.running.first_key_value();
        let Some((_, &item)) = first else {
            return false;
        };
        self.end(item, error);
        true
    }

    pub(super) fn wait(&mut self, millis: u64) {
        self.now = self.now.after(Duration::from_millis(millis));
    }
}

pub(super) const MAP: &str = "
name: regions
mode: mapreduce
map:
  input: regions.json
  max_parallel: 3
  error_policy: {on_item_failure: dlq, retry_config: {attempts: 1, backoff: fixed, initial_delay: 8s}}
  agent_template:
    - shell: ./ask
reduce:
  - id: report
    shell: ./report
";

#[test]
fn a_board_holds_what_the_job_knows() {
    let mut scene = Scene::of(MAP);
    let mut speed = Speed::new(seen(&scene.job, scene.now));
    scene.read(StepId(0), &["north", "east", "so\u{1b}[2Juth", "west", "up", "down"]);
    scene.start();
    scene.wait(2000);
    scene.end(StepId(0).item(0), None);
    scene.end(StepId(0).item(1), Some("a line\nno answer"));
    scene.wait(500);
    scene.end(StepId(0).item(2), Some(""));
    scene.start();
    scene.wait(1500);
    scene.end(StepId(0).item(3), None);
    speed.note(seen(&scene.job, scene.now));
    let board = Board::of(&scene.job, &scene.breakers, &speed, scene.now);
    let lines = board.lines(Size { columns: 80, rows: 24 });
    let drawn: String = lines.iter().map(|line| line.drawn(false) + "\n").collect();
    assert_data_eq!(
        drawn,
        str![[r"
  map     [====>>>>>>>>>]  33%  2 of 6 done, 2 running, 2 waiting
  report  to come
  in 6.0s  east: retry 1 (attempt 2) after exit status 1: no answer
  in 6.5s  so\u{1b}[2Juth: retry 1 (attempt 2) after exit status 1
  6 attempts, 1.5 a second, 4s so far, about 8s left of map

"]]
        .raw()
    );
}

#[test]
fn no_wait_outlasts_the_time_that_is_left() {
    let mut scene = Scene::of(MAP);
    let speed = Speed::new(seen(&scene.job, scene.now));
    scene.read(StepId(0), &["north", "east"]);
    scene.start();
    scene.wait(3000);
    scene.end(StepId(0).item(0), None);
    scene.end(StepId(0).item(1), Some("no answer"));
    let left = Board::of(&scene.job, &scene.breakers, &speed, scene.now).left;
    assert_eq!(left.expect("it is known").time, Duration::from_secs(8));
}
