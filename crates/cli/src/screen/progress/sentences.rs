//! The sentences printed for the events of a job.
//!
//! Pure: the same for a terminal and a file. It remembers the failures of attempts, because a failure and its
//! consequence are two events but one line.

use std::collections::{BTreeMap, BTreeSet};

use undaunted_engine::event::{
    AttemptFailed, AttemptId, BreakerEvent, CommandStopped, Event, ItemEvent, JobEvent, JobResumed, Record,
    RetryScheduled, StepEvent,
};
use undaunted_engine::id::{CommandId, ItemId, StepId};
use undaunted_engine::job::Job;
use undaunted_engine::workflow::OnItemFailure;
use undaunted_policy::{RuleAction, Timestamp};

use super::shared::{complete, configured, late_result};
use crate::screen::resumes::held;
use crate::screen::words::{bounds, failure};
use crate::screen::{count, error_lines, plain, short};

#[derive(Debug, Default)]
pub(in crate::screen) struct Sentences {
    /// Whether every start and every success is printed.
    pub(super) verbose: bool,
    /// The last failure of each item, until its consequence is known.
    pub(super) failed: BTreeMap<ItemId, String>,
    /// Breakers that were reported as open.
    pub(super) open: BTreeSet<String>,
}

impl Sentences {
    pub(in crate::screen) fn new(verbose: bool) -> Self {
        Self { verbose, ..Self::default() }
    }

    pub(in crate::screen) fn of(&mut self, job: &Job, record: &Record) -> Option<String> {
        match &record.event {
            Event::Job(event) => of_job(job, event),
            Event::Step(event) => of_step(job, event),
            Event::Item(event) => self.of_item(job, event, record.at),
            Event::Breaker(event) => of_breaker(job, event),
        }
    }

    fn of_item(&mut self, job: &Job, event: &ItemEvent, at: Timestamp) -> Option<String> {
        match event {
            ItemEvent::AttemptStarted(started) => self.verbose.then(|| {
                let of = started.of;
                format!("  {}: attempt {} started", subject(job, of), of.attempt)
            }),
            ItemEvent::AttemptSucceeded(done) => {
                let of = done.of;
                (of.attempt.0 > 1 || self.verbose)
                    .then(|| format!("  {}: attempt {} succeeded", subject(job, of), of.attempt))
            }
            ItemEvent::AttemptFailed(failed) => {
                self.note_failure(job, failed);
                None
            }
            ItemEvent::RetryScheduled(retrying) => Some(self.retrying(job, retrying)),
            ItemEvent::CommandStopped(stopped) => Some(self.stopped(job, stopped)),
            ItemEvent::CommandRecovered { of, .. } => {
                Some(format!("  {}: recovered by on_failure", subject(job, *of)))
            }
            ItemEvent::Held(held) => self.held(job, held, at),
            ItemEvent::Released(released) => self.verbose.then(|| {
                let name = job.texts.read(&released.breaker);
                let (of, held) = (subject(job, released.of), short(released.held));
                format!("  {of}: released by {} after {held}", plain(name))
            }),
            ItemEvent::LateResult(late) => Some(late_result(job, late)),
            ItemEvent::ResultArrived(arrived) => {
                let of = arrived.of;
                Some(format!(
                    "  {}: the result of attempt {} arrived; no retry",
                    subject(job, of),
                    of.attempt
                ))
            }
            ItemEvent::AttemptAccepted { .. }
            | ItemEvent::CommandRepeated { .. }
            | ItemEvent::Succeeded { .. }
            | ItemEvent::DeadLettered { .. }
            | ItemEvent::Skipped { .. }
            | ItemEvent::Redriven { .. }
            | ItemEvent::Dropped { .. }
            | ItemEvent::StartReserved(_)
            | ItemEvent::ReservationWithdrawn(_) => None,
        }
    }

    fn note_failure(&mut self, job: &Job, failed: &AttemptFailed) {
        let text = failure(job, (Some(failed.cause), failed.limit), failed.error.as_ref());
        self.failed.insert(failed.of.item(), text);
    }

    fn retrying(&mut self, job: &Job, retrying: &RetryScheduled) -> String {
        let of = retrying.of;
        let cause = self.failed.remove(&of.item()).unwrap_or_default();
        let (retry, attempt) = (retrying.arithmetic.retry, of.attempt);
        let (retries, mut attempts) = bounds(retrying.arithmetic.allowed);
        if attempt.0 > retry {
            // The attempts of a handler are numbered over its rounds, its retries are not.
            attempts.clear();
        }
        format!(
            "  {}: attempt {attempt}{attempts} failed ({cause}); retry {retry}{retries} in {}",
            subject(job, of),
            short(retrying.delay)
        )
    }

    fn stopped(&mut self, job: &Job, stopped: &CommandStopped) -> String {
        let of = stopped.of;
        self.failed.remove(&of.item());
        let error = error_lines(job.texts.read(&stopped.error));
        let then = match stopped.handler {
            Some(_) => "; running on_failure",
            None => "",
        };
        let what = if is_skipped(job, stopped) { "skipped" } else { "stopped" };
        format!(
            "  {}: {what} after {}: {}{then}",
            subject(job, of),
            count(of.attempt.0, "attempt", "attempts"),
            error.join("\n    ")
        )
    }
}

fn of_job(job: &Job, event: &JobEvent) -> Option<String> {
    match event {
        JobEvent::Resumed(found) => Some(resumed(job, found)),
        JobEvent::Paused => Some(paused(job)),
        // Nothing starts before the job is unpaused.
        JobEvent::Redriven { .. } => job.times.paused.map(|_| paused(job)),
        JobEvent::Unpaused { away } => Some(format!("  unpaused after {}", short(*away))),
        JobEvent::Stopping { reason } => Some(format!("  stopping: {}", reason.sentence())),
        JobEvent::PoolToppedUp { added, total, .. } => {
            let added = count(*added, "retry", "retries");
            Some(format!("  {added} added to the pool, {total} in total"))
        }
        JobEvent::Submitted(_)
        | JobEvent::TextKept { .. }
        | JobEvent::Completed(_)
        | JobEvent::Partial(_)
        | JobEvent::Failed(_)
        | JobEvent::Cancelled(_)
        | JobEvent::Suspended
        | JobEvent::PolicyChanged { .. }
        | JobEvent::StartsSpaced { .. }
        | JobEvent::StateImported { .. } => None,
    }
}

fn paused(job: &Job) -> String {
    format!("  paused; to unpause:  undaunted unpause {}", job.id())
}

fn of_step(job: &Job, event: &StepEvent) -> Option<String> {
    match event {
        StepEvent::ItemsRead { step, last: true, warning, .. } => {
            let warning = warning.as_deref().map(|text| format!("\n  {}", warning_of(text)));
            Some(items_read(job, *step) + &warning.unwrap_or_default())
        }
        StepEvent::CompletionReached(reached) => reached.is_best_effort().then(|| complete(job, reached)),
        StepEvent::Started { .. }
        | StepEvent::ItemsRead { last: false, .. }
        | StepEvent::InputFailed { .. }
        | StepEvent::Completed { .. }
        | StepEvent::Failed { .. }
        | StepEvent::Skipped { .. }
        | StepEvent::Unreachable { .. }
        | StepEvent::AttributeSet { .. } => None,
    }
}

/// Breaker events, which jobs of earlier releases recorded in their own journals.
fn of_breaker(job: &Job, event: &BreakerEvent) -> Option<String> {
    match event {
        BreakerEvent::Configured { breaker, changes } => Some(configured(job, breaker, changes)),
        BreakerEvent::Opened(_) | BreakerEvent::HalfOpened { .. } | BreakerEvent::Closed { .. } => None,
    }
}

/// What the user should know even if no progress is printed.
pub(super) fn warning(event: &Event) -> Option<String> {
    let Event::Step(StepEvent::ItemsRead { warning, .. }) = event else { return None };
    warning.as_deref().map(warning_of)
}

fn warning_of(text: &str) -> String {
    format!("warning: {}", plain(text))
}

pub(super) fn headline(job: &Job) -> String {
    let name = job.workflow().name.as_deref();
    let file = job.submitted().file.rsplit('/').next();
    let name = name.or(file).unwrap_or_default();
    format!("job {}  {}", job.id(), plain(name))
}

/// The answer to the `asked`-th interrupt, while `running` commands run.
pub(super) fn leaving(asked: u32, running: usize) -> Option<String> {
    let commands = count(running, "command", "commands");
    match (asked, running) {
        (_, 0) => None,
        (1, _) => Some(format!(
            "  waiting for {commands} to finish; press Ctrl-C again to stop {} now",
            if running == 1 { "it" } else { "them" }
        )),
        _ => Some(format!("  stopping {commands} (TERM, then KILL)")),
    }
}

fn resumed(job: &Job, resumed: &JobResumed) -> String {
    let found = resumed.work;
    let away = short(resumed.away);
    // The time of a crash is unknown; only the last event before it is recorded.
    let away =
        if resumed.planned { format!("suspended for {away}") } else { format!("last activity {away} ago") };
    let pause = match job.times.paused {
        Some(_) => format!("\n{}", paused(job)),
        None => String::new(),
    };
    format!(
        "  resuming; {away} (run {}): {} done, {} running, {} waiting, {}{} pending{pause}",
        resumed.run,
        found.settled,
        found.running,
        found.waiting,
        held(found.held),
        found.pending
    )
}

fn items_read(job: &Job, step: StepId) -> String {
    let items = job.step(step).map_or(0, |state| state.items.len());
    let items = count(items, "item", "items");
    let name = job.plan().step(step).map_or("map", |step| &step.name);
    format!("  {}: {items}, {} at a time", plain(name), job.parallel(step))
}

pub(super) fn subject(job: &Job, of: AttemptId) -> String {
    name_of(job, of.item(), of.command)
}

/// The item, and the command if the item has several.
pub(super) fn name_of(job: &Job, item: ItemId, command: CommandId) -> String {
    let identity = plain(job.identity(item));
    let step = job.plan().step(item.step);
    let only = step.is_some_and(|step| step.commands.len() == 1);
    match job.plan().command(command) {
        Some(found) if !(only && job.plan().is_main(command)) => {
            format!("{identity}, {}", plain(&found.id))
        }
        _ => identity,
    }
}

/// Whether the item is skipped by a rule of the command or by `on_item_failure`.
fn is_skipped(job: &Job, stopped: &CommandStopped) -> bool {
    let of = stopped.of;
    let command = job.plan().command(of.command);
    let rule = stopped.rule.and_then(|rule| usize::try_from(rule).ok());
    let rule = command.zip(rule).and_then(|(command, rule)| command.retry.policy.rules().table().get(rule));
    let map = job.plan().map(of.step);
    let all = map.is_some_and(|map| map.on_item_failure == OnItemFailure::Skip);
    rule.map_or(all && stopped.handler.is_none(), |rule| rule.then() == RuleAction::Skip)
}
