//! The pure engine on virtual time, with scripted attempts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use undaunted_checks::simulate::case::{JobCase, ScriptedAttempt, ScriptedEnd};
use undaunted_engine::breaker::{AdmissionControl, BreakerAnswer, BreakerState, ProbeOwner};
use undaunted_engine::decide::{Reaction, react};
use undaunted_engine::effect::{Effect, ask, next_admission, next_wake, offers, ready, wanted};
use undaunted_engine::event::{Event, ItemEvent, JobEvent, NewItem, Record};
use undaunted_engine::id::{ItemId, StartId};
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::Job;
use undaunted_engine::plan::Plan;
use undaunted_engine::submission::{SubmissionContext, submission};
use undaunted_engine::task::{TaskWork, ValueFiles, task};
use undaunted_engine::workflow::{Operator, Source, check};
use undaunted_policy::{FailureCause, Timestamp};

const T0: Timestamp = Timestamp::from_millis(1_700_000_000_000);

enum AttemptReport {
    Accepted,
    End(Box<AttemptEnd>),
}

/// A job and its running attempts.
pub(crate) struct ModelWorld<'c> {
    case: &'c JobCase,
    pub(crate) job: Job,
    breakers: AdmissionControl,
    seq: u64,
    pub(crate) records: Vec<Record>,
    now: Timestamp,
    reports: BTreeMap<(Timestamp, StartId, u8), AttemptReport>,
}

impl<'c> ModelWorld<'c> {
    pub(crate) fn of(case: &'c JobCase, seed: u64) -> Self {
        let text = case.text();
        let operator = Operator::default();
        let checked = check(&Source::new("w.yaml", &text), &operator);
        let around = SubmissionContext {
            job: "7f3k".to_owned(),
            file: "/w/w.yaml".to_owned(),
            working_dir: "/w".to_owned(),
            seed,
            operator: &operator,
            variable: &|_| None,
            release: "0.1.0".to_owned(),
            flow: None,
            token_key: None,
        };
        let submitted = submission(Plan::new(checked.workflow.unwrap()), &text, around).unwrap();
        let first = Record { at: T0, event: Event::Job(JobEvent::Submitted(Box::new(submitted))) };
        let mut world = Self {
            case,
            job: Job::begin(&first).unwrap(),
            breakers: AdmissionControl::default(),
            seq: 0,
            records: vec![first],
            now: T0,
            reports: BTreeMap::new(),
        };
        let _ = world.apply_input(&Input::Woke);
        world
    }

    fn apply_input(&mut self, input: &Input) -> Vec<Record> {
        let id = self.job.shared_id();
        self.breakers.tick(self.now);
        let Reaction { records, reports } = react(&mut self.job, input, self.now);
        for report in &reports {
            self.breakers.report(&id, report);
            // Every record is on the disk at once.
            let name = report.breaker();
            self.seq += 1;
            if self.breakers.seal(name, &id, self.seq).is_some() {
                let (version, _) = self.breakers.version(name).unwrap();
                assert!(self.breakers.acknowledge(name, &id, self.seq, Some(version + 1)));
            }
        }
        self.breakers.refresh();
        let offers = offers(&self.job, &self.breakers);
        self.breakers.set_offers(&id, &offers);
        self.records.extend(records.iter().cloned());
        records
    }

    pub(crate) fn run(&mut self) {
        for _ in 0..20_000 {
            if self.job.stage.has_ended() {
                return;
            }
            if self.apply_effects() || self.start() {
                continue;
            }
            let report = self.reports.keys().next().copied();
            let opening = next_admission(&self.job, &self.breakers);
            let wake = next_wake(&self.job, self.now).into_iter().chain(opening).min();
            match (report, wake) {
                (Some((at, ..)), wake) if wake.is_none_or(|wake| at < wake) => {
                    self.now = self.now.max(at);
                    let (key, report) = self.reports.pop_first().unwrap();
                    self.report(key.1, report);
                }
                (_, Some(wake)) => {
                    self.now = self.now.max(wake);
                    let _ = self.apply_input(&Input::Woke);
                }
                _ => panic!("it is stuck:\n{}", self.describe()),
            }
        }
        panic!("it does not end:\n{}", self.describe());
    }

    fn report(&mut self, start: StartId, report: AttemptReport) {
        // A start that was taken back reports nothing.
        if !self.job.starts.running.contains_key(&start) {
            return;
        }
        let _ = match report {
            AttemptReport::Accepted => self.apply_input(&Input::Accepted { start }),
            AttemptReport::End(end) => self.apply_input(&Input::Ended(end)),
        };
    }

    /// Reads items and ends attempts, if that is wanted; whether anything was done.
    fn apply_effects(&mut self) -> bool {
        for effect in wanted(&self.job) {
            match effect {
                Effect::ReadInput { step, .. } => {
                    let items: Vec<Value> = serde_json::from_str(&self.case.items()).unwrap();
                    let items = items.iter().map(|item| NewItem {
                        identity: item["id"].as_str().unwrap().to_owned(),
                        input: item.to_string(),
                    });
                    let items = items.collect();
                    return !self.apply_input(&Input::ItemsRead { step, items }).is_empty();
                }
                Effect::EndStep { step } => {
                    let running = self.job.starts.running.iter();
                    let mut running = running.filter(|(_, item)| item.step == step && self.job.ends(**item));
                    if let Some((start, _)) = running.next() {
                        return self.kill(*start);
                    }
                }
                Effect::EndAll => {
                    if let Some((start, _)) = self.job.starts.running.iter().next() {
                        return self.kill(*start);
                    }
                }
                Effect::Begin { .. } => {}
            }
        }
        false
    }

    fn kill(&mut self, start: StartId) -> bool {
        let end = AttemptEnd { start, failure: Some(FailureCause::Signal(15)), ..AttemptEnd::default() };
        !self.apply_input(&Input::Ended(Box::new(end))).is_empty()
    }

    /// Starts what is ready; whether anything changed.
    fn start(&mut self) -> bool {
        let mut changed = false;
        self.breakers.tick(self.now);
        for item in ready(&self.job, &self.breakers, self.now) {
            let made = task(&self.job, item, ValueFiles::default(), self.now);
            let made = made.unwrap();
            let answer = self.answer_of_breaker(item, made.as_ref().map(|made| &made.work));
            let records = self.apply_input(&Input::Start { item, refused: None, gate: answer });
            changed |= !records.is_empty();
            for record in &records {
                if let Event::Item(ItemEvent::AttemptStarted(started)) = &record.event {
                    let made = made.as_ref().unwrap();
                    let label = match &made.work {
                        TaskWork::Run { argv } => argv[2].split(' ').next().unwrap().to_owned(),
                        TaskWork::Call(call) => call.url.split('/').nth(3).unwrap().to_owned(),
                        other => panic!("{other:?}"),
                    };
                    let of = started.of;
                    self.schedule(started.start, &label, of.item(), of.attempt.0, made.timeout);
                }
            }
        }
        changed
    }

    /// The answer of a command's breaker; a request asks the breaker of its origin.
    fn answer_of_breaker(&mut self, item: ItemId, work: Option<&TaskWork>) -> BreakerAnswer {
        let active = self.job.active(item).map(|active| active.command);
        let command = active.or_else(|| self.job.plan().first(item.step)).unwrap();
        let breaker = self.job.plan().command(command).unwrap().breaker.as_ref();
        let Some(breaker) = breaker else {
            return BreakerAnswer::NoBreaker;
        };
        let name: Arc<str> = match (&breaker.name, work) {
            (Some(name), _) => Arc::from(name.as_str()),
            (None, Some(TaskWork::Call(call))) => {
                let origin: Vec<&str> = call.url.splitn(4, '/').take(3).collect();
                Arc::from(origin.join("/"))
            }
            (None, work) => panic!("{work:?}"),
        };
        if self.breakers.get(&name).is_none() {
            let state = BreakerState::with_settings(breaker.settings);
            self.breakers.load(&name, state.into());
        }
        self.breakers.tick(self.now);
        if self.breakers.may_probe(&name) {
            self.breakers.set_probe_owner(&name, ProbeOwner::Ours);
        }
        ask(&self.job, &mut self.breakers, item, &name)
    }

    /// Schedules the reports of an attempt, by its script.
    fn schedule(
        &mut self,
        start: StartId,
        label: &str,
        item: ItemId,
        attempt: u32,
        timeout: Option<Duration>,
    ) {
        let is_flow = self.job.submitted().text.contains("mode: flow");
        let name = if is_flow { item.index.to_string() } else { self.job.identity(item).to_owned() };
        let act = self.case.act(label, &name, attempt);
        let timed_out = || AttemptEnd {
            start,
            failure: Some(FailureCause::Timeout),
            took: timeout.unwrap_or_default(),
            ..AttemptEnd::default()
        };
        let hangs = act.how == ScriptedEnd::Hang;
        if let Some(limit) = timeout
            && (hangs || limit <= act.takes)
        {
            let key = (self.now.after(limit), start, 0);
            let _ = self.reports.insert(key, AttemptReport::End(Box::new(timed_out())));
            return;
        }
        let done = self.now.after(act.takes);
        if let ScriptedEnd::Later(result) = &act.how {
            let _ = self.reports.insert((done, start, 0), AttemptReport::Accepted);
            if result.how != ScriptedEnd::Hang {
                let key = (done.after(result.takes), start, 1);
                let _ = self.reports.insert(key, AttemptReport::End(Box::new(ended(start, result))));
            }
        } else if !hangs {
            let _ = self.reports.insert((done, start, 0), AttemptReport::End(Box::new(ended(start, &act))));
        }
    }

    pub(crate) fn describe(&self) -> String {
        let records = self.records.iter().skip(1);
        let lines = records.map(|it| format!("+{:?} {:?}\n", it.at.since(T0), it.event));
        format!("{}\n{:#?}\n{}", self.case.text(), self.case.scripts, lines.collect::<String>())
    }
}

fn ended(start: StartId, act: &ScriptedAttempt) -> AttemptEnd {
    let mut end = AttemptEnd { start, took: act.takes, ..AttemptEnd::default() };
    match &act.how {
        ScriptedEnd::Success(output) => end.output = Some(output.clone()),
        ScriptedEnd::Exit(status) => end.failure = Some(FailureCause::Exit(*status)),
        ScriptedEnd::Signal(signal) => end.failure = Some(FailureCause::Signal(*signal)),
        ScriptedEnd::Status(status, after) => {
            end.failure = Some(FailureCause::Status(*status));
            end.retry_after = after.map(Duration::from_secs);
        }
        ScriptedEnd::Refused => end.failure = Some(FailureCause::Network),
        ScriptedEnd::Denied => end.failure = Some(FailureCause::Refused),
        ScriptedEnd::Hang | ScriptedEnd::Later(_) => panic!("{act:?} does not end"),
    }
    end
}
