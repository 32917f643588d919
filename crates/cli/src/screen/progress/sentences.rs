//! What is said of an event, if anything is.
//!
//! Pure: says the same to a terminal and to a file. It remembers how attempts have failed, because
//! what follows from a failure is another event, and people want to read of both in one line.

use std::collections::{BTreeMap, BTreeSet};

use undaunted_engine::decide::cause_in_words;
use undaunted_engine::event::{Event, Failed, Record, Resumed, Retrying, Stopped, Subject};
use undaunted_engine::job::Job;
use undaunted_engine::workflow::OnItemFailure;
use undaunted_policy::Then;

use crate::screen::duration::short;
use crate::screen::resumes::held;
use crate::screen::summary::error_lines;
use crate::screen::words::count;
use crate::screen::words::plain;

/// Puts events into words.
#[derive(Debug, Default)]
pub(super) struct Sentences {
    /// Whether every start and every success is worth a line.
    pub(super) verbose: bool,
    /// What the last attempt of an item said, until it is known what follows from it.
    pub(super) failed: BTreeMap<(u32, u32), String>,
    /// Breakers of which it was said that they are open.
    pub(super) open: BTreeSet<String>,
}

impl Sentences {
    pub(super) fn new(verbose: bool) -> Self {
        Self {
            verbose,
            ..Self::default()
        }
    }

    /// What is said of an event.
    pub(super) fn of(&mut self, job: &Job, record: &Record) -> Option<String> {
        match &record.event {
            Event::JobResumed(found) => Some(resumed(job, found)),
            Event::ItemsRead {
                step, last: true, ..
            } => Some(items_read(job, *step)),
            Event::AttemptStarted(started) if self.verbose => {
                let of = started.subject;
                Some(format!(
                    "  {}: attempt {} starts",
                    subject(job, of),
                    of.attempt
                ))
            }
            Event::AttemptSucceeded(done) if done.subject.attempt > 1 || self.verbose => {
                let of = done.subject;
                let attempt = of.attempt;
                Some(format!(
                    "  {}: attempt {attempt} succeeded",
                    subject(job, of)
                ))
            }
            Event::AttemptFailed(failed) => {
                self.note_failure(job, failed);
                None
            }
            Event::RetryScheduled(retrying) => Some(self.retrying(job, retrying)),
            Event::CommandStopped(stopped) => Some(self.stopped(job, stopped)),
            Event::CommandRecovered { subject: of, .. } => {
                Some(format!("  {}: recovered by on_failure", subject(job, *of)))
            }
            Event::JobPaused => Some(format!("  paused; go on:  undaunted unpause {}", job.id())),
            Event::JobUnpaused { away } => Some(format!("  goes on after {} paused", short(*away))),
            Event::JobStopping { reason } => Some(format!("  stops: {}", reason.sentence())),
            _ => self.of_shared(job, record),
        }
    }

    fn note_failure(&mut self, job: &Job, failed: &Failed) {
        let error = failed.error.as_ref().map(|error| job.texts.read(error));
        let last = error.and_then(|error| error.lines().last()).unwrap_or("");
        let cause = cause_in_words(failed.cause);
        let text = match last {
            "" => cause,
            last => format!("{cause}: {}", plain(last)),
        };
        let of = failed.subject;
        self.failed.insert((of.step, of.item), text);
    }

    fn retrying(&mut self, job: &Job, retrying: &Retrying) -> String {
        let of = retrying.subject;
        let said = self.failed.remove(&(of.step, of.item)).unwrap_or_default();
        let (retry, attempt) = (retrying.sum.retry, of.attempt);
        let bounds = retrying.sum.allowed.map(|allowed| {
            let executions = u64::from(allowed).saturating_add(1);
            (format!(" of {allowed}"), format!(" of {executions}"))
        });
        let (retries, attempts) = bounds.unwrap_or_default();
        format!(
            "  {}: attempt {attempt}{attempts} failed ({said}); retry {retry}{retries} in {}",
            subject(job, of),
            short(retrying.delay)
        )
    }

    fn stopped(&mut self, job: &Job, stopped: &Stopped) -> String {
        let of = stopped.subject;
        self.failed.remove(&(of.step, of.item));
        let error = error_lines(job.texts.read(&stopped.error));
        let then = match stopped.handler {
            Some(_) => "; on_failure runs",
            None => "",
        };
        let what = if is_skipped(job, stopped) {
            "skipped"
        } else {
            "stopped"
        };
        format!(
            "  {}: {what} after {}: {}{then}",
            subject(job, of),
            count(
                usize::try_from(of.attempt).unwrap_or(usize::MAX),
                "attempt",
                "attempts"
            ),
            error.join("\n    ")
        )
    }
}

/// The first line.
pub(super) fn headline(job: &Job) -> String {
    let name = job.workflow().name.as_deref();
    let file = job.submitted().file.rsplit('/').next();
    let name = name.or(file).unwrap_or_default();
    format!("job {}  {}", job.id(), plain(name))
}

/// What is said to somebody who asked to leave, for the how-manieth time, while so many run.
pub(super) fn leaving(asked: u32, running: usize) -> Option<String> {
    let commands = count(running, "command", "commands");
    match (asked, running) {
        (_, 0) => None,
        (1, _) => Some(format!(
            "  waiting for {commands} to finish; Ctrl-C again ends {} now",
            if running == 1 { "it" } else { "them" }
        )),
        _ => Some(format!("  ending {commands} (TERM, then KILL)")),
    }
}

fn resumed(job: &Job, resumed: &Resumed) -> String {
    let found = resumed.restored;
    let away = short(resumed.away);
    // Nobody notes when a process dies, only that it lived a moment before.
    let away = if resumed.planned {
        format!("after {away} suspended")
    } else {
        format!("last heard of {away} ago")
    };
    let paused = match job.paused {
        Some(_) => format!("\n  paused; go on:  undaunted unpause {}", job.id()),
        None => String::new(),
    };
    format!(
        "  goes on, {away} (run {}): {} done, {} running, {} waiting, {}{} to come{paused}",
        resumed.run,
        found.settled,
        found.running,
        found.waiting,
        held(found.held),
        found.pending
    )
}

fn items_read(job: &Job, step: u32) -> String {
    let items = job.step(step).map_or(0, |state| state.items.len());
    let items = usize::try_from(items).unwrap_or(usize::MAX);
    let items = count(items, "item", "items");
    let name = job.plan().step(step).map_or("map", |step| &step.name);
    format!(
        "  {}: {items}, {} at a time",
        plain(name),
        job.parallel(step)
    )
}

pub(super) fn subject(job: &Job, of: Subject) -> String {
    name_of(job, of.step, of.item, of.command)
}

/// The item, and its command where an item has several.
pub(super) fn name_of(job: &Job, step: u32, item: u32, command: u32) -> String {
    let identity = job.step(step).map(|state| state.items.identity(item));
    let identity = plain(identity.unwrap_or_default());
    let step = job.plan().step(step);
    let only = step.is_some_and(|step| step.commands.len() == 1);
    match job.plan().command(command) {
        Some(found) if !(only && job.plan().is_main(command)) => {
            format!("{identity}, {}", plain(&found.id))
        }
        _ => identity,
    }
}

/// Whether an item is skipped because of this: by a rule of the command, or by one for all items.
fn is_skipped(job: &Job, stopped: &Stopped) -> bool {
    let of = stopped.subject;
    let command = job.plan().command(of.command);
    let rule = stopped.rule.and_then(|rule| usize::try_from(rule).ok());
    let rule = command
        .zip(rule)
        .and_then(|(command, rule)| command.retry.policy.rules().table().get(rule));
    let map = job.plan().map(of.step);
    let all = map.is_some_and(|map| map.on_item_failure == OnItemFailure::Skip);
    rule.map_or(all && stopped.handler.is_none(), |rule| {
        rule.then() == Then::Skip
    })
}
