//! A job while it runs, line by line on standard error.

use std::collections::BTreeMap;
use std::io::{self, Write};

use undaunted_engine::decide::cause_in_words;
use undaunted_engine::event::{Event, Failed, Record, Retrying, Stopped, Subject};
use undaunted_engine::job::Job;
use undaunted_runner::drive::Observer;

use super::duration::short;
use super::words::count;

/// Prints what people want to know when it happens.
pub(crate) struct Lines {
    quiet: bool,
    /// What the last attempt of an item said, until it is known what follows from it.
    failed: BTreeMap<(u32, u32), String>,
}

impl Lines {
    pub(crate) fn new(job: &Job, quiet: bool) -> Self {
        let lines = Self {
            quiet,
            failed: BTreeMap::new(),
        };
        let name = job.workflow().name.as_deref();
        let file = job.submitted().file.rsplit('/').next();
        let name = name.or(file).unwrap_or_default();
        lines.say(&format!("job {}  {name}", job.id()));
        lines
    }

    fn say(&self, line: &str) {
        if !self.quiet {
            // Whoever closed standard error does not want to know.
            let _ = writeln!(io::stderr(), "{line}");
        }
    }

    fn failed(&mut self, job: &Job, failed: &Failed) {
        let error = failed.error.as_ref().map(|error| job.texts.read(error));
        let last = error.and_then(|error| error.lines().last()).unwrap_or("");
        let cause = cause_in_words(failed.cause);
        let text = match last {
            "" => cause,
            last => format!("{cause}: {last}"),
        };
        let of = failed.subject;
        self.failed.insert((of.step, of.item), text);
    }

    fn retrying(&mut self, job: &Job, retrying: &Retrying) {
        let of = retrying.subject;
        let said = self.failed.remove(&(of.step, of.item)).unwrap_or_default();
        let (retry, attempt) = (retrying.sum.retry, of.attempt);
        let bounds = retrying.sum.allowed.map(|allowed| {
            let executions = u64::from(allowed).saturating_add(1);
            (format!(" of {allowed}"), format!(" of {executions}"))
        });
        let (retries, attempts) = bounds.unwrap_or_default();
        self.say(&format!(
            "  {}: attempt {attempt}{attempts} failed ({said}); retry {retry}{retries} in {}",
            subject(job, of),
            short(retrying.delay)
        ));
    }

    fn stopped(&mut self, job: &Job, stopped: &Stopped) {
        let of = stopped.subject;
        self.failed.remove(&(of.step, of.item));
        let error = job.texts.read(&stopped.error);
        let then = match stopped.handler {
            Some(_) => "; on_failure runs",
            None => "",
        };
        self.say(&format!(
            "  {}: stopped after {}: {}{then}",
            subject(job, of),
            count(
                usize::try_from(of.attempt).unwrap_or(usize::MAX),
                "attempt",
                "attempts"
            ),
            error.replace('\n', "\n    ")
        ));
    }
}

/// The item, and its command where an item has several.
fn subject(job: &Job, of: Subject) -> String {
    let item = job.step(of.step).map(|state| state.items.identity(of.item));
    let item = item.unwrap_or_default();
    let step = job.plan().step(of.step);
    let only = step.is_some_and(|step| step.commands.len() == 1);
    match job.plan().command(of.command) {
        Some(command) if !(only && job.plan().is_main(of.command)) => {
            format!("{item}, {}", command.id)
        }
        _ => item.to_owned(),
    }
}

impl Observer for Lines {
    fn recorded(&mut self, job: &Job, _seq: u64, record: &Record) {
        match &record.event {
            Event::JobResumed(resumed) => {
                let found = resumed.restored;
                let how = if resumed.planned { "suspended" } else { "down" };
                self.say(&format!(
                    "  goes on after {} {how} (run {}): {} done, {} running, {} waiting, {} to come",
                    short(resumed.away),
                    resumed.run,
                    found.settled,
                    found.running,
                    found.waiting,
                    found.pending
                ));
            }
            Event::ItemsRead {
                step, last: true, ..
            } => {
                let items = job.step(*step).map_or(0, |state| state.items.len());
                let items = count(
                    usize::try_from(items).unwrap_or(usize::MAX),
                    "item",
                    "items",
                );
                self.say(&format!(
                    "  map: {items}, {} at a time",
                    job.parallel(*step)
                ));
            }
            Event::AttemptSucceeded(done) if done.subject.attempt > 1 => {
                let of = done.subject;
                self.say(&format!(
                    "  {}: attempt {} succeeded",
                    subject(job, of),
                    of.attempt
                ));
            }
            Event::AttemptFailed(failed) => self.failed(job, failed),
            Event::RetryScheduled(retrying) => self.retrying(job, retrying),
            Event::CommandStopped(stopped) => self.stopped(job, stopped),
            Event::CommandRecovered { subject: of, .. } => {
                self.say(&format!("  {}: recovered by on_failure", subject(job, *of)));
            }
            Event::JobStopping { reason } => {
                self.say(&format!("  stops: {}", reason.sentence()));
            }
            _ => {}
        }
    }

    fn leaving(&mut self, asked: u32, running: usize) {
        let commands = count(running, "command", "commands");
        match (asked, running) {
            (_, 0) => {}
            (1, _) => self.say(&format!(
                "  waiting for {commands} to finish; Ctrl-C again ends {} now",
                if running == 1 { "it" } else { "them" }
            )),
            _ => self.say(&format!("  ending {commands} (TERM, then KILL)")),
        }
    }
}
