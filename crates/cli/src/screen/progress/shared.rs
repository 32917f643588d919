//! The sentences about limits that items share: breakers and completion rules.
//!
//! A thousand items may be held at once. One line is printed when the first is held, and one when the breaker
//! closes; a line for each item is printed only with `--verbose`.

use undaunted_engine::breaker::{BreakerChange, BreakerChangeKind};
use undaunted_engine::event::{CompletionReached, LateResult, PolicyChange, StartHeld, StoredText};
use undaunted_engine::job::Job;
use undaunted_policy::{Timestamp, WhenOpen};

use super::Sentences;
use super::sentences::subject;
use crate::screen::holds::ahead;
use crate::screen::limits::outcome_of;
use crate::screen::words::bounds;
use crate::screen::{count, plain};

impl Sentences {
    /// For a breaker that has opened, half opened or closed.
    pub(in crate::screen) fn turned(
        &mut self,
        job: &Job,
        name: &str,
        change: &BreakerChange,
    ) -> Option<String> {
        match change.change {
            BreakerChangeKind::Opened | BreakerChangeKind::Tripped => Some(self.opened(name, change)),
            BreakerChangeKind::HalfOpened => self.verbose.then(|| {
                let name = plain(name);
                format!("  breaker `{name}` half open: probing")
            }),
            BreakerChangeKind::Closed | BreakerChangeKind::Reset => Some(self.closed(job, name, change)),
            BreakerChangeKind::Configured
            | BreakerChangeKind::Failed
            | BreakerChangeKind::Succeeded
            | BreakerChangeKind::Probed
            | BreakerChangeKind::ProbeSucceeded
            | BreakerChangeKind::ProbeLost => None,
        }
    }

    pub(super) fn held(&mut self, job: &Job, held: &StartHeld, now: Timestamp) -> Option<String> {
        let of = held.of;
        let name = plain(job.texts.read(&held.breaker));
        let again = match held.until {
            Some(until) => format!("next probe in {}", ahead(until.since(now))),
            None => "probing".to_owned(),
        };
        if let Some(sum) = &held.arithmetic {
            let cause = self.failed.remove(&of.item()).unwrap_or_default();
            let attempt = of.attempt;
            let (retries, attempts) = bounds(sum.allowed);
            return Some(format!(
                "  {}: attempt {attempt}{attempts} failed ({cause}); retry {}{retries} when {name} \
                 releases it, {again}",
                subject(job, of),
                sum.retry
            ));
        }
        let first = self.open.insert(name.clone());
        if self.verbose {
            return Some(format!("  {}: held by {name}, {again}", subject(job, of)));
        }
        // Another job opened the breaker, so that this one has not reported it yet.
        first.then(|| format!("  breaker `{name}` is open; its commands are on hold, {again}"))
    }

    fn opened(&mut self, name: &str, change: &BreakerChange) -> String {
        self.open.insert(name.to_owned());
        let why = match (change.change, &change.job, change.failures) {
            (BreakerChangeKind::Tripped, Some(_), _) => "a rule tripped it".to_owned(),
            (BreakerChangeKind::Tripped, None, _) => "by hand".to_owned(),
            (_, _, 0) => "the probe failed".to_owned(),
            (_, _, failures) => count(failures, "failure", "failures in a row"),
        };
        let becomes = match change.state.settings.when_open {
            WhenOpen::Fail => "fail",
            WhenOpen::Hold => "are on hold",
        };
        let again = ahead(change.state.until().unwrap_or(change.at).since(change.at));
        let name = plain(name);
        format!("  breaker `{name}` opened ({why}); its commands {becomes}, next probe in {again}")
    }

    fn closed(&mut self, job: &Job, name: &str, change: &BreakerChange) -> String {
        self.open.remove(name);
        let held = match job.held_by(name) {
            0 => String::new(),
            held => format!("; releasing {}", count(held, "item", "items")),
        };
        let why = if change.change == BreakerChangeKind::Reset { "by hand" } else { "the target is back" };
        format!("  breaker `{}` closed: {why}{held}", plain(name))
    }
}

pub(super) fn configured(job: &Job, breaker: &StoredText, changes: &[PolicyChange]) -> String {
    let changes = changes.iter().map(|change| {
        let setting = change.setting.strip_prefix("breaker.");
        let setting = setting.unwrap_or(&change.setting);
        format!("{setting} {} → {}", change.old, change.new)
    });
    let changes: Vec<String> = changes.collect();
    format!(
        "  breaker `{}`: {} (set by the latest job, for all jobs)",
        plain(job.texts.read(breaker)),
        changes.join(", ")
    )
}

pub(super) fn complete(job: &Job, reached: &CompletionReached) -> String {
    let step = job.plan().step(reached.step);
    let step = step.map(|step| plain(&step.name)).unwrap_or_default();
    format!("  {step}: {}", outcome_of(reached))
}

pub(super) fn late_result(job: &Job, late: &LateResult) -> String {
    let name = plain(job.identity(late.item()));
    let result = match late.reason {
        None => "succeeded".to_owned(),
        Some(reason) => format!("failed ({reason})"),
    };
    let counts = if late.counted { "counted" } else { "not counted" };
    format!("  {name}: late result: {result}, {counts}")
}
