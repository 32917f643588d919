//! Results of attempts that others have taken on, sent until somebody takes them.

use std::time::Duration;

use undaunted_engine::id::StartId;
use undaunted_engine::task::{TokenStatus, find_token};
use undaunted_runner::drive::Reported;
use undaunted_runner::request::{self, ArrivedResult};
use undaunted_store::Store;

use super::case::{Act, How};
use super::outside::{Happening, Outside, look};
use super::run::Simulation;

/// When a result that nobody has taken is sent again.
const AGAIN: Duration = Duration::from_millis(700);

/// A result on its way.
pub(super) struct Report {
    pub(super) job: String,
    /// The name of the step.
    pub(super) step: String,
    pub(super) token: String,
    /// The attempt it is for.
    pub(super) start: StartId,
    pub(super) act: Act,
}

impl Report {
    /// What it says.
    fn arrived(&self) -> ArrivedResult {
        ArrivedResult {
            step: self.step.clone(),
            token: self.token.clone(),
            result: match &self.act.how {
                How::Success(outputs) if outputs.is_empty() => Ok("{}".to_owned()),
                How::Success(outputs) => Ok(outputs.clone()),
                _ => Err("it did not work".to_owned()),
            },
        }
    }
}

impl Outside {
    /// Whether the attempt a result is for runs, by the journal.
    fn awaits(&self, report: &Report) -> bool {
        let seen = self.witness.jobs.get(&report.job);
        let seen = seen.and_then(|seen| seen.job.as_ref());
        seen.is_some_and(|seen| {
            matches!(find_token(seen, &report.step, &report.token), TokenStatus::Running(_))
        })
    }

    /// Whether anybody sends a result: in a calm world nobody sends what nobody waits for.
    fn is_sent(&self, report: &Report) -> bool {
        let seen = self.witness.jobs.get(&report.job);
        let seen = seen.and_then(|seen| seen.job.as_ref());
        !self.is_calm || seen.is_some_and(|job| job.starts.running.contains_key(&report.start))
    }
}

impl Simulation<'_> {
    /// Somebody sends the result of an attempt that was taken on, until it is taken.
    pub(super) fn report(&mut self, report: Report) {
        if !look(&self.shared).is_sent(&report) {
            return;
        }
        {
            let mut outside = look(&self.shared);
            if matches!(report.act.how, How::Success(_)) {
                outside.witness.reported_well(&report.token);
            }
            outside.tell(|| format!("a result comes for {} {}", report.job, report.step));
        }
        if self.is_taken(&report) {
            return;
        }
        let mut outside = look(&self.shared);
        let seen = outside.witness.jobs.get(&report.job);
        if seen.is_some_and(|seen| !seen.ledger.is_over) {
            outside.after(AGAIN, Happening::Report(Box::new(report)));
        }
    }

    /// Whether somebody takes a result: whoever runs the job, or the store for whoever will.
    fn is_taken(&mut self, report: &Report) -> bool {
        let arrived = report.arrived();
        let mut living = self.processes.iter().enumerate();
        let home = living.find_map(|(number, process)| {
            let process = process.as_ref()?;
            let runs = process.hub.job(&report.job).is_some();
            runs.then_some((number, process))
        });
        if let Some((number, process)) = home {
            let answer = process.hub.handle().hand_on(&report.job, arrived);
            look(&self.shared).wake(number);
            self.settle();
            // It may be answered later; then whoever sent it sends it again, and is told so.
            let taken = answer.try_recv() == Ok(Reported::Taken);
            let mut outside = look(&self.shared);
            if taken && outside.awaits(report) {
                let what = format!("{}: a result was taken and is not on record", report.job);
                outside.witness.violation(what);
            }
            return taken;
        }
        let store: &dyn Store = match self.processes.iter().flatten().next() {
            Some(process) => process.store(),
            None => &self.disk,
        };
        let awaits = look(&self.shared).awaits(report);
        let taken = awaits && request::hand_on(store, &report.job, &arrived).is_ok();
        if taken && arrived.result.is_ok() {
            look(&self.shared).witness.owes(&report.token);
        }
        taken
    }
}
