//! The journal of a job, as `undaunted events --json` prints it.

use std::time::UNIX_EPOCH;

use serde_json::Value;

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JournalEvent {
    /// When, in microseconds.
    pub(crate) at: u64,
    pub(crate) kind: String,
    value: Value,
}

impl JournalEvent {
    /// Reads a line; nothing if it is none.
    pub(crate) fn read(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let at = instant(value.get("at")?.as_str()?)?;
        let kind = value.get("type")?.as_str()?.to_owned();
        Some(Self { at, kind, value })
    }

    pub(crate) fn is(&self, kind: &str) -> bool {
        self.kind == kind
    }

    /// A text of it; empty if it has none of this name.
    pub(crate) fn text(&self, name: &str) -> &str {
        let value = self.value.get(name).and_then(Value::as_str);
        value.unwrap_or_default()
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.value.get(name)?.as_u64()
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.value.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    /// A number one level further down.
    pub(crate) fn inner(&self, name: &str, inner: &str) -> Option<u64> {
        self.value.get(name)?.get(inner)?.as_u64()
    }

    /// An instant of it, in microseconds.
    pub(crate) fn time(&self, name: &str) -> Option<u64> {
        instant(self.value.get(name)?.as_str()?)
    }

    /// The command of an item that it is about.
    pub(crate) fn place(&self) -> CommandKey {
        (self.text("correlation_id").to_owned(), self.text("command").to_owned())
    }

    pub(crate) fn attempt(&self) -> u64 {
        self.number("attempt").unwrap_or_default()
    }

    /// Whether the job has ended with it.
    pub(crate) fn is_end(&self) -> bool {
        let ends = ["job_completed", "job_failed", "job_partial", "job_cancelled"];
        ends.contains(&self.kind.as_str())
    }

    /// The same for people.
    pub(crate) fn describe(&self) -> String {
        self.value.to_string()
    }
}

/// A command of an item: the correlation id, and the name of the command.
pub(crate) type CommandKey = (String, String);

/// The events of a job; nothing if a line is not one.
pub(crate) fn read(text: &str) -> Option<Vec<JournalEvent>> {
    text.lines().map(JournalEvent::read).collect()
}

/// An RFC 3339 time in microseconds since 1970.
fn instant(text: &str) -> Option<u64> {
    let since = humantime::parse_rfc3339(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_micros()).ok()
}
