//! The journal of a job, as `undaunted events --json` prints it.

use serde_json::Value;

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    /// When, in microseconds.
    pub(crate) at: u64,
    pub(crate) kind: String,
    value: Value,
}

impl Event {
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
    pub(crate) fn place(&self) -> Place {
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
    pub(crate) fn told(&self) -> String {
        self.value.to_string()
    }
}

/// A command of an item: the correlation id, and the name of the command.
pub(crate) type Place = (String, String);

/// The events of a job; nothing if a line is not one.
pub(crate) fn read(text: &str) -> Option<Vec<Event>> {
    text.lines().map(Event::read).collect()
}

/// `2026-11-16T04:33:07.164Z` in microseconds since 1970.
fn instant(text: &str) -> Option<u64> {
    let part = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    // Years begin in March here, so that a leap day is the last of its year.
    let moved = month.checked_add(9)?.checked_rem(12)?;
    let year = year.checked_sub(moved.checked_div(10)?)?;
    let leaps = (year / 4).checked_sub(year / 100)?.checked_add(year / 400)?;
    let days = year.checked_mul(365)?.checked_add(leaps)?;
    let days = days.checked_add(moved.checked_mul(306)?.checked_add(5)? / 10)?;
    // The days of this way of counting up to 1970.
    let days = days.checked_add(day)?.checked_sub(719_469)?;
    let seconds = part(11, 13)?.checked_mul(3600)?;
    let seconds = seconds.checked_add(part(14, 16)?.checked_mul(60)?)?;
    let seconds = seconds.checked_add(part(17, 19)?)?;
    let seconds = days.checked_mul(86_400)?.checked_add(seconds)?;
    let millis = seconds.checked_mul(1000)?.checked_add(part(20, 23)?)?;
    millis.checked_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_read_to_the_millisecond() {
        assert_eq!(instant("1970-01-01T00:00:00.000Z"), Some(0));
        assert_eq!(instant("2024-02-29T12:34:56.789Z"), Some(1_709_210_096_789_000));
        assert_eq!(instant("yesterday"), None);
    }
}
