//! Async results, sent until they are accepted.

use std::time::Duration;

use undaunted_engine::id::StartId;
use undaunted_engine::task::{TokenStatus, find_token};
use undaunted_runner::drive::DeliveryOutcome;
use undaunted_runner::request::{self, ArrivedResult};
use undaunted_store::Store;

use super::case::{ScriptedAttempt, ScriptedEnd};
use super::run::Simulation;
use super::world::{SimEvent, SimWorld, lock};

/// When a result that was not accepted is sent again.
const AGAIN: Duration = Duration::from_millis(700);

/// An async result on its way.
pub(super) struct SentResult {
    pub(super) job: String,
    pub(super) step: String,
    pub(super) token: String,
    pub(super) start: StartId,
    pub(super) act: ScriptedAttempt,
}

impl SentResult {
    fn arrived(&self) -> ArrivedResult {
        ArrivedResult {
            step: self.step.clone(),
            token: self.token.clone(),
            result: match &self.act.end {
                ScriptedEnd::Success(outputs) if outputs.is_empty() => Ok("{}".to_owned()),
                ScriptedEnd::Success(outputs) => Ok(outputs.clone()),
                _ => Err("it did not work".to_owned()),
            },
        }
    }
}

impl SimWorld {
    /// Whether the item of a result waits for it or for a retry, by the journal.
    fn is_awaited(&self, result: &SentResult) -> bool {
        let seen = self.oracle.jobs.get(&result.job);
        let seen = seen.and_then(|seen| seen.job.as_ref());
        seen.is_some_and(|seen| {
            let found = find_token(seen, &result.step, &result.token);
            matches!(found, TokenStatus::Running(_) | TokenStatus::Waiting(_))
        })
    }

    /// In a calm world only results of running attempts are sent.
    fn is_sent(&self, result: &SentResult) -> bool {
        let seen = self.oracle.jobs.get(&result.job);
        let seen = seen.and_then(|seen| seen.job.as_ref());
        !self.is_calm || seen.is_some_and(|job| job.starts.running.contains_key(&result.start))
    }
}

impl Simulation<'_> {
    /// Sends a result, and again until it is accepted.
    pub(super) fn send(&mut self, result: SentResult) {
        if !lock(&self.shared).is_sent(&result) {
            return;
        }
        {
            let mut world = lock(&self.shared);
            if matches!(result.act.end, ScriptedEnd::Success(_)) {
                world.oracle.success_sent(&result.token);
            }
            world.log(|| format!("a result comes for {} {}", result.job, result.step));
        }
        if self.deliver(&result) {
            return;
        }
        let mut world = lock(&self.shared);
        let seen = world.oracle.jobs.get(&result.job);
        if seen.is_some_and(|seen| !seen.ledger.has_ended) {
            world.after(AGAIN, SimEvent::ResultSent(Box::new(result)));
        }
    }

    /// Whether a result is accepted: by the process that runs the job, or by the store for the next owner.
    fn deliver(&mut self, result: &SentResult) -> bool {
        let arrived = result.arrived();
        let mut living = self.processes.iter().enumerate();
        let home = living.find_map(|(number, process)| {
            let process = process.as_ref()?;
            let runs = process.event_loop.job(&result.job).is_some();
            runs.then_some((number, process))
        });
        if let Some((number, process)) = home {
            let answer = process.event_loop.handle().deliver_later(&result.job, arrived);
            lock(&self.shared).wake(number);
            self.poll_woken();
            // An answer that comes later counts as a refusal, so the result is sent again.
            let taken = answer.try_recv() == Ok(DeliveryOutcome::Taken);
            let mut world = lock(&self.shared);
            if taken && world.is_awaited(result) {
                let what = format!("{}: a result was taken and is not on record", result.job);
                world.oracle.violation(what);
            }
            return taken;
        }
        let store: &dyn Store = match self.processes.iter().flatten().next() {
            Some(process) => process.store(),
            None => &self.disk,
        };
        let is_awaited = lock(&self.shared).is_awaited(result);
        let taken = is_awaited && request::store_result(store, &result.job, &arrived).is_ok();
        if taken && arrived.result.is_ok() {
            lock(&self.shared).oracle.result_accepted(&result.token);
        }
        taken
    }
}
