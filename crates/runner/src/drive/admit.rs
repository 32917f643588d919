//! A job and its breakers: it loads and configures them, and offers probes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use undaunted_engine::effect;
use undaunted_engine::id::ItemId;
use undaunted_engine::mutant::{self, Mutant};
use undaunted_engine::task::Task;
use undaunted_policy::{BreakerSettings, Timestamp};

use super::breakers::BreakerTransition;
use super::error::DriveError;
use super::running::JobDriver;

impl JobDriver<'_> {
    pub(super) fn load_breakers(&self) -> Result<(), DriveError> {
        let named = self.job.plan().breakers();
        let mut cache = self.breakers.borrow_mut();
        cache.tick();
        for name in self.job.breakers() {
            let settings = named.get(&*name).copied();
            let settings = settings.unwrap_or_else(|| self.job.breaker_settings(&name));
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
            target = target.or_else(|| self.executors.requests.last_origin());
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
        let paced = self.starter.rate.wait(self.context.services.machine.uptime());
        if self.executors.programs.is_settling() || paced.is_some_and(|wait| !wait.is_zero()) {
            for offer in offers.values_mut() {
                offer.left = None;
            }
        }
        cache.admission.set_offers(&self.job.shared_id(), &offers);
    }
}
