//! The attempts of a journal, each with its start, its end and the wait before it.

use std::collections::BTreeMap;
use std::fmt;

use super::SLACK;
use crate::kill::journal::{CommandKey, JournalEvent};

/// How an attempt ended, by the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TracedOutcome {
    Success,
    /// The cause of the failure, and its number if it has one.
    Failure(String, u64),
}

impl TracedOutcome {
    pub(super) fn is(&self, wanted: &str) -> bool {
        matches!(self, Self::Failure(cause, _) if cause == wanted)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AttemptTrace {
    pub(super) key: CommandKey,
    pub(super) item: String,
    pub(super) number: u64,
    pub(super) start: u64,
    /// When the start was decided, in microseconds, and the index of its event.
    pub(super) at: u64,
    /// When it was on record: its start, or the reservation of that.
    pub(super) recorded: u64,
    pub(super) index: usize,
    /// When a retry was due.
    pub(super) due: Option<u64>,
    pub(super) end: Option<(u64, TracedOutcome)>,
}

impl fmt::Display for AttemptTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (item, command) = (&self.item, &self.key.1);
        write!(f, "attempt {} of {command} for {item} (start {})", self.number, self.start)
    }
}

impl AttemptTrace {
    /// Whether one of these deaths came between its start and its recorded end.
    pub(super) fn saw(&self, deaths: &[u64]) -> bool {
        let end = self.end.as_ref();
        let until = end.map_or(u64::MAX, |(at, _)| at.saturating_add(SLACK));
        deaths.iter().any(|at| (self.at..=until).contains(at))
    }

    pub(super) fn is(&self, cause: &str) -> bool {
        self.end.as_ref().is_some_and(|(_, outcome)| outcome.is(cause))
    }
}

pub(super) fn attempts(events: &[JournalEvent]) -> Vec<AttemptTrace> {
    let mut attempts: Vec<AttemptTrace> = Vec::new();
    let mut open: BTreeMap<CommandKey, usize> = BTreeMap::new();
    let mut due: BTreeMap<CommandKey, u64> = BTreeMap::new();
    let mut reserved: BTreeMap<u64, u64> = BTreeMap::new();
    for (index, event) in events.iter().enumerate() {
        let key = event.key();
        match event.kind.as_str() {
            "start_reserved" => {
                reserved.insert(event.number("start").unwrap_or_default(), event.at);
            }
            "attempt_started" => {
                open.insert(key.clone(), attempts.len());
                let start = event.number("start").unwrap_or_default();
                attempts.push(AttemptTrace {
                    number: event.attempt(),
                    item: event.text("item").to_owned(),
                    start,
                    at: event.at,
                    recorded: reserved.remove(&start).unwrap_or(event.at),
                    index,
                    due: due.remove(&key),
                    end: None,
                    key,
                });
            }
            "retry_scheduled" => {
                due.insert(key, event.time("due_at").unwrap_or_default());
            }
            "attempt_succeeded" | "attempt_failed" => {
                let attempt = open.remove(&key).and_then(|it| attempts.get_mut(it));
                if let Some(attempt) = attempt {
                    attempt.end = Some((event.at, outcome(event)));
                }
            }
            _ => {}
        }
    }
    attempts
}

fn outcome(event: &JournalEvent) -> TracedOutcome {
    if event.is("attempt_succeeded") {
        return TracedOutcome::Success;
    }
    let cause = event.text("cause");
    let number = match cause {
        "exit" => event.number("exit_code"),
        "signal" => event.number("signal"),
        "status" => event.number("status"),
        _ => None,
    };
    TracedOutcome::Failure(cause.to_owned(), number.unwrap_or_default())
}
