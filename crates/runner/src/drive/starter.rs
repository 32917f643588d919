//! Starting attempts, if their breakers admit them: they are prepared before the start is recorded, and begin
//! when the record is on disk.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use undaunted_engine::breaker::BreakerAnswer;
use undaunted_engine::effect::{self, Effect};
use undaunted_engine::id::{ItemId, StartId};
use undaunted_engine::input::Input;
use undaunted_engine::job::StartPace;
use undaunted_engine::mutant::{self, Mutant};
use undaunted_engine::task::{Task, ValueFiles, task};
use undaunted_policy::{BreakerSettings, Timestamp};

use super::breakers::BreakerTransition;
use super::{DriveError, JobDriver};

#[derive(Default)]
pub(super) struct Starter {
    pub(super) rate: StartRate,
    /// When `fill` last looked for ready items.
    filled_at: Timestamp,
    /// Tasks whose start is not on disk yet, in the order of their starts.
    prepared: VecDeque<(StartId, Task)>,
    /// The results of the map, once a command needs them.
    pub(super) results: Option<Value>,
    /// Whether the results are being read.
    pub(super) is_reading: bool,
    /// Whether a late result has changed them while they were being read.
    pub(super) is_outdated: bool,
    /// Attempts on record as started that wait for the results.
    pub(super) awaiting_results: Vec<(StartId, ItemId)>,
}

impl Starter {
    pub(super) fn new(rate: StartRate) -> Self {
        Self { rate, ..Self::default() }
    }

    /// A late result counts: later commands read the results again.
    pub(super) fn forget_results(&mut self) {
        self.results = None;
        self.is_outdated = self.is_reading;
    }

    /// Keeps the task of a start, the latest so far, until that is on disk.
    pub(super) fn prepare(&mut self, start: StartId, task: Task) {
        self.prepared.push_back((start, task));
    }

    pub(super) fn take(&mut self, start: StartId) -> Option<Task> {
        let place = self.prepared.binary_search_by_key(&start, |(of, _)| *of).ok()?;
        self.prepared.remove(place).map(|(_, task)| task)
    }
}

/// Keeps the pace of a job on the monotonic clock.
#[derive(Debug, Default)]
pub(super) struct StartRate {
    /// When the next attempt may start, as an uptime.
    next: Duration,
}

impl StartRate {
    /// The pace holds across runs: the first start waits for the rest of the time since the last one.
    pub(super) fn new(pace: Option<StartPace>, now: Timestamp, uptime: Duration) -> Self {
        let wait = pace.map_or(Duration::ZERO, |pace| pace.wait(now));
        Self { next: uptime.saturating_add(wait) }
    }

    /// Whether an attempt may start now; if so, it counts as started.
    pub(super) fn allows(&mut self, pace: Option<StartPace>, uptime: impl FnOnce() -> Duration) -> bool {
        let Some(pace) = pace else {
            return true;
        };
        let uptime = uptime();
        if uptime < self.next {
            return false;
        }
        // Unused starts are not saved up, so a pause does not lead to a burst.
        self.next = uptime.saturating_add(pace.every);
        true
    }

    pub(super) fn wait(&self, pace: Option<StartPace>, uptime: Duration) -> Option<Duration> {
        pace?;
        Some(self.next.saturating_sub(uptime))
    }
}

fn named(path: Option<&PathBuf>) -> Cow<'_, str> {
    path.map(|path| path.to_string_lossy()).unwrap_or_default()
}

impl JobDriver<'_> {
    pub(super) fn fill(&mut self) -> Result<(), DriveError> {
        if self.context.shutdown.is_requested() {
            if self.executors.inputs.is_empty() {
                self.decide(&Input::Suspend);
            }
            return Ok(());
        }
        if self.executors.programs.is_settling || self.breakers.borrow().is_cut_off {
            return Ok(());
        }
        loop {
            self.starter.filled_at = self.now();
            let ready = self.ready(self.starter.filled_at);
            let before = self.journal.pending.records.len();
            for item in ready {
                let machine = &self.context.services.machine;
                if self.awaits_results(item.step)
                    || !self.starter.rate.allows(self.job.starts.pace, || machine.uptime())
                    || !self.start(item)?
                {
                    return Ok(());
                }
            }
            if self.journal.pending.records.len() == before {
                self.reserve();
                return Ok(());
            }
        }
    }

    /// Starts the next attempt of an item. False if that has to wait for the store.
    fn start(&mut self, item: ItemId) -> Result<bool, DriveError> {
        let now = self.now();
        let task = self.task(item, now);
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
        self.decide_at(&Input::Start { item, refused, gate }, now);
        let records = &self.journal.pending.records;
        let begun = records.get(before..).unwrap_or_default().iter().find_map(effect::wanted_by);
        if let (Some(Effect::Begin { start, .. }), Ok((task, _))) = (begun, prepared) {
            self.starter.prepare(start, task);
        }
        Ok(true)
    }

    pub(super) fn task(&self, item: ItemId, now: Timestamp) -> Result<Task, String> {
        let (plan, folder) = (self.job.plan(), &self.context.folder);
        // Few workflows refer to files.
        let item_file = plan.wants_item_files().then(|| folder.item(item));
        let results_file = plan.wants_results().then(|| folder.results());
        let files = ValueFiles {
            item: &named(item_file.as_ref()),
            results: self.starter.results.as_ref(),
            results_file: &named(results_file.as_ref()),
            secrets: self.context.secrets.values(),
            webhooks: &self.context.webhooks,
        };
        match task(&self.job, item, files, now) {
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
        let wake = effect::next_wake(&self.job, self.starter.filled_at).filter(|_| !leaves);
        let wake = wake.map(|at| at.since(now).max(LEAST));
        // The start rate matters only if something is ready.
        let uptime = services.machine.uptime();
        let paced =
            self.starter.rate.wait(self.job.starts.pace, uptime).filter(|_| !self.ready(now).is_empty());
        let rule = effect::awaits_rule(&self.job).then_some(services.check_interval);
        let looked = self.observer.tick_interval();
        if self.breakers.borrow().is_cut_off {
            // The job gets a turn when the outage ends.
            return uptime.checked_add(looked?);
        }
        let opening = self.opening().filter(|_| !leaves).map(|wait| wait.max(LEAST));
        let first = [wake, paced, rule, looked, opening].into_iter().flatten().min();
        uptime.checked_add(first?)
    }
}

impl JobDriver<'_> {
    pub(super) fn load_breakers(&self) -> Result<(), DriveError> {
        let named = self.job.plan().breakers();
        let mut cache = self.breakers.borrow_mut();
        cache.tick();
        for name in self.job.breakers() {
            let settings = named.get(&*name).copied().unwrap_or_else(|| self.job.breaker_settings(&name));
            cache.load(&name, settings)?;
            cache.admission.add_user(&name, &self.job.shared_id());
        }
        Ok(())
    }

    /// Passes changed settings of the job to its breakers, in the same append.
    pub(super) fn configure_breakers(&mut self) -> Result<(), DriveError> {
        self.load_breakers()?;
        let mut cache = self.breakers.borrow_mut();
        for (name, settings) in self.job.plan().breakers() {
            let name = Arc::from(name);
            cache.admission.configure(&name, &self.job.shared_id(), settings);
            self.journal.pending.breakers.insert(name);
        }
        Ok(())
    }

    /// The breaker of the next attempt of an item, with its settings in the command; or why the attempt
    /// cannot be made.
    pub(super) fn breaker_for(
        &mut self,
        item: ItemId,
        task: &Task,
    ) -> Result<Option<(Arc<str>, BreakerSettings)>, String> {
        let active = self.job.active(item).map(|active| active.command);
        let command = active.or_else(|| self.job.plan().first(item.step));
        let command = command.and_then(|command| self.job.plan().command(command));
        let executor = self.executors.of(command.map(|command| &command.action));
        let mut target = executor.target(task, &self.context)?;
        if mutant::is(Mutant::WrongBreaker) {
            target = target.or_else(|| self.executors.calls.last_origin());
        }
        let breaker = command.and_then(|command| command.breaker.as_deref());
        let Some(breaker) = breaker else {
            let wrong = target.filter(|_| mutant::is(Mutant::WrongBreaker));
            return Ok(wrong.map(|target| (target, BreakerSettings::DEFAULT)));
        };
        let name = breaker.name.as_deref().map(Arc::from).or(target);
        Ok(name.map(|name| (name, breaker.settings)))
    }

    pub(super) fn notify_transition(&mut self, transition: &BreakerTransition) {
        self.observer.breaker_changed(&self.job, &transition.breaker, &transition.change);
    }

    pub(super) fn ready(&self, now: Timestamp) -> Vec<ItemId> {
        effect::ready(&self.job, &self.breakers.borrow().admission, now)
    }

    /// How long until a breaker lets more through by itself.
    pub(super) fn opening(&self) -> Option<Duration> {
        let cache = self.breakers.borrow();
        let opening = effect::next_admission(&self.job, &cache.admission)?;
        Some(cache.wait(opening))
    }

    /// Tells the breakers how many attempts wait for them. A job that cannot start anything now offers no
    /// probe, so that other jobs can.
    pub(super) fn offer(&self) {
        let mut cache = self.breakers.borrow_mut();
        let mut offers = if self.context.shutdown.is_requested() {
            BTreeMap::new()
        } else {
            effect::probe_offers(&self.job, &cache.admission)
        };
        let uptime = self.context.services.machine.uptime();
        let paced = self.starter.rate.wait(self.job.starts.pace, uptime);
        if self.executors.programs.is_settling || paced.is_some_and(|wait| !wait.is_zero()) {
            for offer in offers.values_mut() {
                offer.left = None;
            }
        }
        cache.admission.set_offers(&self.job.shared_id(), &offers);
    }
}
