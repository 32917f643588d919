//! The journal of a job, as `undaunted events --json` prints it.

use std::fmt;
use std::time::UNIX_EPOCH;

use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JournalEvent {
    /// In microseconds.
    pub(crate) at: u64,
    pub(crate) kind: String,
    value: Value,
}

impl JournalEvent {
    pub(crate) fn read(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let at = instant(value.get("at")?.as_str()?)?;
        let kind = value.get("type")?.as_str()?.to_owned();
        Some(Self { at, kind, value })
    }

    pub(crate) fn is(&self, kind: &str) -> bool {
        self.kind == kind
    }

    /// A text field; empty if there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        let value = self.value.get(name).and_then(Value::as_str);
        value.unwrap_or_default()
    }

    /// Without the fraction that short delays have.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        let shown = self.value.get(name)?.as_number()?.to_string();
        shown.split('.').next()?.parse().ok()
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.value.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    /// A number one level further down.
    pub(crate) fn inner(&self, name: &str, inner: &str) -> Option<u64> {
        self.value.get(name)?.get(inner)?.as_u64()
    }

    /// A time field, in microseconds.
    pub(crate) fn time(&self, name: &str) -> Option<u64> {
        instant(self.value.get(name)?.as_str()?)
    }

    /// The command of an item that the event is about.
    pub(crate) fn key(&self) -> CommandKey {
        (self.text("correlation_id").to_owned(), self.text("command").to_owned())
    }

    pub(crate) fn attempt(&self) -> u64 {
        self.number("attempt").unwrap_or_default()
    }

    /// Whether the event ends the job.
    pub(crate) fn is_end(&self) -> bool {
        let ends = ["job_completed", "job_failed", "job_partial", "job_cancelled"];
        ends.contains(&self.kind.as_str())
    }
}

impl fmt::Display for JournalEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

/// The correlation id of the item and the name of the command.
pub(crate) type CommandKey = (String, String);

/// The events of a job; `None` if a line is not an event.
pub(crate) fn read(text: &str) -> Option<Vec<JournalEvent>> {
    text.lines().map(JournalEvent::read).collect()
}

/// An RFC 3339 time in microseconds since 1970.
fn instant(text: &str) -> Option<u64> {
    let since = humantime::parse_rfc3339(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_micros()).ok()
}
