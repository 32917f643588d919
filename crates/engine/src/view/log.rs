//! Log records of the events of a job: one JSON object a line, which the server writes to standard error.
//!
//! The objects contain no secrets and no output of commands.

use std::fmt::Write as _;

use serde_json::{Value, json};
use undaunted_policy::{Reason, Timestamp};

use super::breaker::breaker_event;
use super::event::event;
use super::time::rfc3339;
use crate::breaker::{BreakerChange, BreakerChangeKind};
use crate::event::{
    BreakerEvent, CommandStopped, CompletionReached, Event, ItemEvent, JobEvent, LateResult, Record,
    StepEvent,
};
use crate::id::ItemId;
use crate::job::Job;
use crate::stored::worded;
use crate::task::correlation_id;

worded! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum LogLevel {
        Error = "error",
        Warn = "warn",
        Info = "info",
        Debug = "debug",
    }
}

impl LogLevel {
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|level| level.word().eq_ignore_ascii_case(word))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct LogRecord {
    pub at: Timestamp,
    pub level: LogLevel,
    pub what: LogBody,
    /// In the order in which they are written.
    pub fields: Vec<(&'static str, Value)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogBody {
    Event(&'static str),
    Message(String),
}

impl LogBody {
    /// Whether the record has a name or a text of its own and does not only repeat an event.
    pub fn is_named(&self) -> bool {
        match self {
            Self::Message(_) => true,
            Self::Event(word) => word.starts_with(char::is_uppercase),
        }
    }
}

impl LogRecord {
    /// The JSON object, without a line end.
    pub fn line(&self) -> String {
        let (name, what) = match &self.what {
            LogBody::Event(word) => ("event", json!(word)),
            LogBody::Message(text) => ("message", json!(text)),
        };
        let at = json!(rfc3339(self.at));
        let level = json!(self.level.word());
        // Not a `Value`, which would not keep `at` first.
        let mut line = format!("{{\"at\":{at},\"level\":{level},\"{name}\":{what}");
        for (name, value) in &self.fields {
            let _ = write!(line, ",\"{name}\":{value}");
        }
        line.push('}');
        line
    }
}

/// Whether an event has a log record above the debug level. Most have none, so a log without debug records need not
/// render them.
pub const fn is_above_debug(event: &Event) -> bool {
    // A command stopped by a budget has a second record.
    matches!(event, Event::Item(ItemEvent::CommandStopped(_)))
        || !matches!(level(event), None | Some(LogLevel::Debug))
}

/// `None` for texts, which are logged with the events that refer to them.
const fn level(event: &Event) -> Option<LogLevel> {
    Some(match event {
        Event::Job(JobEvent::TextKept { .. }) => return None,
        // That all items have reported is no news where nothing else was possible.
        Event::Step(StepEvent::CompletionReached(reached)) => match reached.best_effort {
            Some(false) => LogLevel::Debug,
            None | Some(true) => LogLevel::Info,
        },
        Event::Job(
            JobEvent::Submitted(_)
            | JobEvent::Resumed(_)
            | JobEvent::Suspended
            | JobEvent::Completed(_)
            | JobEvent::Paused
            | JobEvent::Unpaused { .. }
            | JobEvent::Redriven { .. }
            | JobEvent::PolicyChanged { .. }
            | JobEvent::PoolToppedUp { .. }
            | JobEvent::StartsSpaced { .. },
        )
        | Event::Breaker(BreakerEvent::Configured { .. }) => LogLevel::Info,
        Event::Job(
            JobEvent::Partial(_) | JobEvent::Failed(_) | JobEvent::Cancelled(_) | JobEvent::Stopping { .. },
        )
        | Event::Step(
            StepEvent::InputFailed { .. }
            | StepEvent::Failed { .. }
            | StepEvent::Unreachable { .. }
            | StepEvent::ItemsRead { warning: Some(_), .. },
        )
        | Event::Item(ItemEvent::DeadLettered { .. } | ItemEvent::LateResult(_)) => LogLevel::Warn,
        Event::Job(JobEvent::StateImported { .. })
        | Event::Step(
            StepEvent::Started { .. }
            | StepEvent::ItemsRead { warning: None, .. }
            | StepEvent::Completed { .. }
            | StepEvent::Skipped { .. }
            | StepEvent::AttributeSet { .. },
        )
        | Event::Item(
            ItemEvent::AttemptStarted(_)
            | ItemEvent::AttemptSucceeded(_)
            | ItemEvent::AttemptFailed(_)
            | ItemEvent::AttemptAccepted { .. }
            | ItemEvent::ResultArrived(_)
            | ItemEvent::RetryScheduled(_)
            | ItemEvent::CommandStopped(_)
            | ItemEvent::CommandRepeated { .. }
            | ItemEvent::CommandRecovered { .. }
            | ItemEvent::Succeeded { .. }
            | ItemEvent::Skipped { .. }
            | ItemEvent::Redriven { .. }
            | ItemEvent::Dropped { .. }
            | ItemEvent::Held(_)
            | ItemEvent::Released(_)
            | ItemEvent::StartReserved(_)
            | ItemEvent::ReservationWithdrawn(_),
        )
        | Event::Breaker(
            BreakerEvent::Opened(_) | BreakerEvent::HalfOpened { .. } | BreakerEvent::Closed { .. },
        ) => LogLevel::Debug,
    })
}

/// The log records of an event. The job has applied it, and perhaps later ones.
pub fn records_of(job: &Job, record: &Record) -> Vec<LogRecord> {
    let Some(level) = level(&record.event) else {
        return Vec::new();
    };
    if let Event::Step(StepEvent::CompletionReached(reached)) = &record.event {
        return vec![completion(job, record, level, reached)];
    }
    if let Event::Item(ItemEvent::LateResult(late)) = &record.event {
        return vec![late_result(job, record, late)];
    }
    let mut records = vec![plain(job, record, level)];
    if let Event::Item(ItemEvent::CommandStopped(stopped)) = &record.event {
        records.extend(stop(job, record, stopped));
    }
    records
}

/// The log record of a transition of a breaker.
pub fn transition_record(breaker: &str, change: &BreakerChange) -> Option<LogRecord> {
    let view = breaker_event(breaker, change)?;
    let (word, level) = match change.change {
        BreakerChangeKind::Opened | BreakerChangeKind::Tripped => ("breaker_opened", LogLevel::Warn),
        BreakerChangeKind::HalfOpened => ("breaker_half_opened", LogLevel::Debug),
        BreakerChangeKind::Closed | BreakerChangeKind::Reset => ("breaker_closed", LogLevel::Info),
        BreakerChangeKind::Configured
        | BreakerChangeKind::Failed
        | BreakerChangeKind::Succeeded
        | BreakerChangeKind::Probed
        | BreakerChangeKind::ProbeSucceeded
        | BreakerChangeKind::ProbeLost => return None,
    };
    let fields = view.fields().iter();
    let fields = fields.filter(|(name, _)| !matches!(*name, "seq" | "at" | "type"));
    Some(LogRecord { at: change.at, level, what: LogBody::Event(word), fields: fields.cloned().collect() })
}

fn plain(job: &Job, record: &Record, level: LogLevel) -> LogRecord {
    let view = event(job, 0, record);
    let fields = view.fields().iter().filter(|(name, _)| {
        !matches!(
            *name,
            "seq" | "at" | "type" | "job" | "output" | "stdout" | "stderr" | "value" | "working_dir"
        )
    });
    let own = ("job", json!(job.id()));
    LogRecord {
        at: record.at,
        level,
        what: LogBody::Event(record.event.word()),
        fields: [own].into_iter().chain(fields.cloned()).collect(),
    }
}

/// The second log record of a command that a budget has stopped.
fn stop(job: &Job, record: &Record, stopped: &CommandStopped) -> Option<LogRecord> {
    let of = stopped.of;
    let command = job.plan().command(of.command);
    let command = command.map_or("", |command| command.id.as_str());
    let (level, what) = match stopped.reason {
        Reason::RetryBudget => {
            (LogLevel::Warn, LogBody::Message(format!("Retry budget exhausted for {command}")))
        }
        Reason::RetryBudgetExpired => {
            (LogLevel::Debug, LogBody::Message(format!("Command {command} retry budget expired")))
        }
        Reason::JobBudgetExhausted | Reason::WorkflowBudgetExhausted => {
            (LogLevel::Warn, LogBody::Event("RetryBudgetExhausted"))
        }
        _ => return None,
    };
    let mut fields = of_item(job, of.item());
    if let LogBody::Event(_) = what {
        let sum = stopped.arithmetic.as_ref();
        let used = match stopped.reason {
            Reason::WorkflowBudgetExhausted => sum.and_then(|sum| sum.share),
            _ => sum.and_then(|sum| sum.pool),
        };
        let pool = job.pool.map(|pool| (pool.consumed, pool.limits.total));
        let (consumed, total) = used.or(pool).unwrap_or_default();
        let reason = format!("{} ({consumed}/{total})", stopped.reason.word());
        fields.push(("consumed", consumed.into()));
        fields.push(("total", total.into()));
        fields.push(("reason", reason.into()));
    } else {
        fields.push(("command", command.into()));
        fields.push(("attempt", of.attempt.0.into()));
        fields.push(("reason", stopped.reason.word().into()));
    }
    Some(LogRecord { at: record.at, level, what, fields })
}

fn of_item(job: &Job, item: ItemId) -> Vec<(&'static str, Value)> {
    let step = job.step(item.step);
    let identity = step.map(|step| step.items.identity(item.index));
    vec![
        ("job", job.id().into()),
        ("item", identity.into()),
        ("correlation_id", correlation_id(job, item).into()),
    ]
}

fn completion(job: &Job, record: &Record, level: LogLevel, reached: &CompletionReached) -> LogRecord {
    let completion = reached.completion();
    let reported = reached.completed.saturating_add(reached.failed);
    let step = job.plan().step(reached.step).map(|step| step.name.as_str());
    LogRecord {
        at: record.at,
        level,
        what: LogBody::Event("BestEffortCompletion"),
        fields: vec![
            ("job", job.id().into()),
            ("step", step.into()),
            ("reason", completion.reason.to_string().into()),
            ("completed", reached.completed.into()),
            ("missing", reached.target.saturating_sub(reported).into()),
            ("success", completion.success.into()),
        ],
    }
}

fn late_result(job: &Job, record: &Record, late: &LateResult) -> LogRecord {
    let policy = if late.counted { "update_result" } else { "log_only" };
    let mut fields = of_item(job, late.item());
    for (name, _) in &mut fields {
        if *name == "item" {
            *name = "datacenter";
        }
    }
    fields.push(("policy", policy.into()));
    fields.push(("reason", late.reason.map(Reason::word).into()));
    LogRecord { at: record.at, level: LogLevel::Warn, what: LogBody::Event("LateDatacenterResult"), fields }
}
