//! What one job asks its breakers, and has waiting for them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use undaunted_engine::effect;
use undaunted_engine::task::{Task, TaskWork};
use undaunted_policy::mutant::{self, Mutant};
use undaunted_policy::{BreakerSettings, Timestamp};

use super::breakers::Turned;
use super::error::DriveError;
use super::running::Drive;
use crate::executor::origin;

impl Drive<'_> {
    /// Reads every breaker that the job uses.
    pub(super) fn meet_breakers(&self) -> Result<(), DriveError> {
        let named = self.job.plan().breakers();
        let mut cache = self.breakers.borrow_mut();
        cache.tick(self.world);
        for name in self.job.breakers() {
            let settings = named.get(&*name).copied();
            let settings = settings.unwrap_or_else(|| self.job.breaker_settings(&name));
            cache.meet_now(self.world, &name, settings)?;
            cache.admission.note_user(&name, &self.job.shared_id());
        }
        Ok(())
    }

    /// The settings of the job were changed: its breakers take them over, in the same append.
    pub(super) fn configure_breakers(&mut self) -> Result<(), DriveError> {
        self.meet_breakers()?;
        let mut cache = self.breakers.borrow_mut();
        for (name, settings) in self.job.plan().breakers() {
            let name = Arc::from(name);
            cache
                .admission
                .configure(&name, &self.job.shared_id(), settings);
            self.pending.breakers.insert(name);
        }
        Ok(())
    }

    /// The breaker that the next attempt of an item asks, with the settings its command gives it; or why
    /// the attempt cannot be made.
    pub(super) fn breaker_for(
        &mut self,
        step: u32,
        item: u32,
        task: &Task,
    ) -> Result<Option<(Arc<str>, BreakerSettings)>, String> {
        let origin = match &task.work {
            TaskWork::Call(call) => Some(self.origin_of(&call.url)?),
            _ if mutant::is(Mutant::WrongBreakerAsked) => {
                self.last_origin.as_ref().map(|(_, it)| Arc::clone(it))
            }
            _ => None,
        };
        let active = self.job.active(step, item).map(|active| active.command);
        let command = active.or_else(|| self.job.plan().first(step));
        let command = command.and_then(|command| self.job.plan().command(command));
        let breaker = command.and_then(|command| command.breaker.as_deref());
        let Some(breaker) = breaker else {
            let wrong = origin.filter(|_| mutant::is(Mutant::WrongBreakerAsked));
            return Ok(wrong.map(|origin| (origin, BreakerSettings::DEFAULT)));
        };
        let name = breaker.name.as_deref().map(Arc::from).or(origin);
        Ok(name.map(|name| (name, breaker.settings)))
    }

    /// The origin of an address, if that may be called.
    fn origin_of(&mut self, url: &str) -> Result<Arc<str>, String> {
        // The items of a step are mostly sent to one place.
        let known = self.last_origin.take().filter(|(of, _)| of == url);
        let target: Arc<str> = match known {
            Some((_, target)) => target,
            None => origin(url)?.into(),
        };
        self.last_origin = Some((url.to_owned(), Arc::clone(&target)));
        if self.world.endpoints.allow(url) {
            return Ok(target);
        }
        // The address may hold a secret, so it is not shown.
        Err(format!(
            "addresses of {target} like its own may not be called from here"
        ))
    }

    /// Tells those that look on that a breaker has opened, half opened or closed.
    pub(super) fn turned(&mut self, turned: &Turned) {
        let (breaker, change) = (&turned.breaker, &turned.change);
        self.observer.turned(&self.job, breaker, change);
    }

    /// The items that may start.
    pub(super) fn ready(&self, now: Timestamp) -> Vec<(u32, u32)> {
        effect::ready(&self.job, &self.breakers.borrow().admission, now)
    }

    /// How long it is until a breaker lets more through by itself.
    pub(super) fn opening(&self) -> Option<Duration> {
        let cache = self.breakers.borrow();
        let opening = effect::next_opening(&self.job, &cache.admission)?;
        Some(cache.wait(self.world, opening))
    }

    /// Says what the job has waiting for breakers. A job that cannot start anything now does not keep
    /// others from probing.
    pub(super) fn offer(&self) {
        let mut cache = self.breakers.borrow_mut();
        let mut offers = if self.interrupts > 0 {
            BTreeMap::new()
        } else {
            effect::offers(&self.job, &cache.admission)
        };
        let paced = self.pace.wait(self.world.machine.uptime());
        if self.is_settling || paced.is_some_and(|wait| !wait.is_zero()) {
            for offer in offers.values_mut() {
                offer.left = None;
            }
        }
        cache.admission.offer(&self.job.shared_id(), &offers);
    }
}
