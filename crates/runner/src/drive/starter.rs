//! Starting attempts: they are prepared before the start is recorded, and begin when the record is on disk.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use undaunted_engine::breaker::BreakerAnswer;
use undaunted_engine::effect::{self, Effect};
use undaunted_engine::id::{ItemId, StartId};
use undaunted_engine::input::Input;
use undaunted_engine::task::{Task, ValueFiles, task};
use undaunted_policy::Timestamp;

use super::error::DriveError;
use super::running::JobDriver;

pub(super) struct Starter {
    pub(super) rate: StartRate,
    /// When `fill` last looked for ready items.
    filled_at: Timestamp,
    /// Tasks whose start is not on disk yet.
    prepared: BTreeMap<StartId, Task>,
    /// The results of the map, once a command needs them.
    pub(super) results: Option<Value>,
    /// Whether the results are being read.
    pub(super) is_reading: bool,
    /// Attempts on record as started that wait for the results.
    pub(super) awaiting_results: Vec<(StartId, ItemId)>,
}

impl Starter {
    pub(super) const fn new(rate: StartRate) -> Self {
        Self {
            rate,
            filled_at: Timestamp::ZERO,
            prepared: BTreeMap::new(),
            results: None,
            is_reading: false,
            awaiting_results: Vec::new(),
        }
    }

    pub(super) fn take(&mut self, start: StartId) -> Option<Task> {
        self.prepared.remove(&start)
    }
}

/// Spaces starts evenly.
#[derive(Debug)]
pub(super) struct StartRate {
    between: Option<Duration>,
    /// When the next attempt may start, as an uptime.
    next: Duration,
}

impl StartRate {
    /// `rate` is in starts per second.
    pub(super) fn new(rate: Option<f64>, now: Duration) -> Self {
        let between = rate.filter(|rate| *rate > 0.0);
        Self { between: between.and_then(|rate| Duration::try_from_secs_f64(rate.recip()).ok()), next: now }
    }

    /// Whether an attempt may start now; if so, it counts as started.
    pub(super) fn allows(&mut self, now: Duration) -> bool {
        let Some(between) = self.between else {
            return true;
        };
        if now < self.next {
            return false;
        }
        // Unused starts are not saved up, so a pause does not lead to a burst.
        self.next = now.saturating_add(between);
        true
    }

    pub(super) fn wait(&self, now: Duration) -> Option<Duration> {
        self.between?;
        Some(self.next.saturating_sub(now))
    }
}

impl JobDriver<'_> {
    pub(super) fn fill(&mut self) -> Result<(), DriveError> {
        if self.context.shutdown.is_requested() {
            if self.executors.inputs.is_empty() {
                self.decide(&Input::Suspend);
            }
            return Ok(());
        }
        if self.executors.programs.is_settling() || self.breakers.borrow().is_cut_off {
            return Ok(());
        }
        loop {
            self.starter.filled_at = self.now();
            let ready = self.ready(self.starter.filled_at);
            let before = self.journal.pending.records.len();
            for item in ready {
                let uptime = self.context.services.machine.uptime();
                if self.awaits_results(item.step) || !self.starter.rate.allows(uptime) || !self.start(item)? {
                    return Ok(());
                }
            }
            if self.journal.pending.records.len() == before {
                return Ok(());
            }
        }
    }

    /// Starts the next attempt of an item. False if that has to wait for the store.
    fn start(&mut self, item: ItemId) -> Result<bool, DriveError> {
        let task = self.task(item);
        let prepared = task.and_then(|task| {
            let breaker = self.breaker_for(item, &task)?;
            Ok((task, breaker))
        });
        let gate = match &prepared {
            Ok((_, Some((name, settings)))) => {
                let breaker = (name, *settings);
                let mut cache = self.breakers.borrow_mut();
                let Some(gate) = cache.ask(&self.job, item, breaker)? else {
                    return Ok(false);
                };
                gate
            }
            Ok((_, None)) | Err(_) => BreakerAnswer::NoBreaker,
        };
        let refused = prepared.as_ref().err().cloned();
        let before = self.journal.pending.records.len();
        self.decide(&Input::Start { item, refused, gate });
        let records = &self.journal.pending.records;
        let new = records.get(before..).unwrap_or_default();
        let begun = new.iter().find_map(effect::wanted_by);
        if let (Some(Effect::Begin { start, .. }), Ok((task, _))) = (begun, prepared) {
            self.starter.prepared.insert(start, task);
        }
        Ok(true)
    }

    pub(super) fn task(&self, item: ItemId) -> Result<Task, String> {
        let item_file = self.context.folder.item(item);
        let results_file = self.context.folder.results();
        let files = ValueFiles {
            item: &item_file.to_string_lossy(),
            results: self.starter.results.as_ref(),
            results_file: &results_file.to_string_lossy(),
            secrets: self.context.secrets.values(),
            webhooks: &self.context.webhooks,
        };
        match task(&self.job, item, files, self.now()) {
            Ok(Some(task)) => Ok(task),
            Ok(None) => Err("this release cannot run the command".to_owned()),
            Err(error) => Err(format!("{error} ({})", error.help())),
        }
    }

    /// When the job wants a turn if no message comes before, as an uptime.
    pub(super) fn due(&self) -> Option<Duration> {
        /// The shortest wait, so that something that is always due cannot spin the loop.
        const LEAST: Duration = Duration::from_millis(1);
        let services = self.context.services;
        let leaves = self.context.shutdown.is_requested();
        let now = self.now();
        // Since `filled_at`, not `now`: items that fell due in between have not been started yet.
        let wake = effect::next_wake(&self.job, self.starter.filled_at);
        let wake = wake.filter(|_| !leaves);
        let wake = wake.map(|at| at.since(now).max(LEAST));
        // The start rate matters only if something is ready.
        let uptime = services.machine.uptime();
        let paced = self.starter.rate.wait(uptime);
        let paced = paced.filter(|_| !self.ready(now).is_empty());
        let rule = effect::awaits_rule(&self.job).then_some(services.check_interval);
        let looked = self.observer.tick_interval();
        if self.breakers.borrow().is_cut_off {
            // The job gets a turn when the outage ends.
            return uptime.checked_add(looked?);
        }
        let opening = self.opening().filter(|_| !leaves);
        let opening = opening.map(|wait| wait.max(LEAST));
        let first = [wake, paced, rule, looked, opening].into_iter().flatten().min();
        uptime.checked_add(first?)
    }
}
