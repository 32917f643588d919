//! Words, phrases and the two forms of output that all commands share.

use std::env;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use serde::Serialize;
use undaunted_engine::decide::describe_cause;
use undaunted_engine::event::{StoredText, TimeLimit};
use undaunted_engine::job::Job;
pub(crate) use undaunted_engine::view::address;
use undaunted_engine::view::{self, is_plain};
use undaunted_policy::FailureCause;

/// Prints a view as one line of JSON.
pub(crate) fn json(out: &mut impl Write, view: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, view)?;
    writeln!(out)
}

/// Prints a view on standard output: as one line of JSON, or as the text that `text` writes.
pub(crate) fn print<V: Serialize>(
    view: &V,
    as_json: bool,
    text: impl FnOnce(&mut BufWriter<StdoutLock<'static>>, &V) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    if as_json {
        json(&mut out, view)?;
    } else {
        text(&mut out, view)?;
    }
    out.flush()
}

/// The first `shown` of `total` names: `north, east and 3 more`.
pub(crate) fn names(names: impl Iterator<Item = String>, shown: usize, total: u64) -> String {
    let names: Vec<String> = names.take(shown).collect();
    match total.saturating_sub(u64::try_from(names.len()).unwrap_or(u64::MAX)) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// A number with its noun: `1 error`, `2 errors`.
pub(crate) fn count(number: impl TryInto<usize>, one: &str, many: &str) -> String {
    let number = number.try_into().unwrap_or(usize::MAX);
    format!("{number} {}", if number == 1 { one } else { many })
}

/// A failure in words, with the last line of its error: `exit status 1: no answer`.
pub(crate) fn failure(
    job: &Job,
    (cause, limit): (Option<FailureCause>, Option<TimeLimit>),
    error: Option<&StoredText>,
) -> String {
    let error = error.map_or("", |error| job.texts.read(error));
    let cause = cause.map(|cause| describe_cause(cause, limit)).unwrap_or_default();
    match error.lines().last().unwrap_or("") {
        "" => cause,
        last => format!("{cause}: {}", plain(last)),
    }
}

/// A text as one word of a command to type. A name that would change what a terminal shows cannot be typed as shown.
pub(crate) fn quoted(text: &str) -> String {
    plain(&view::quoted(text))
}

/// The limits of retries and of attempts: ` of 3` and ` of 4`, both empty if retries are unlimited.
pub(crate) fn bounds(retries: Option<u32>) -> (String, String) {
    let bounds = retries.map(|retries| {
        let attempts = u64::from(retries).saturating_add(1);
        (format!(" of {retries}"), format!(" of {attempts}"))
    });
    bounds.unwrap_or_default()
}

pub(crate) fn wants_colour(out: &impl IsTerminal) -> bool {
    out.is_terminal() && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The last line of a text, with control characters escaped.
pub(crate) fn one_line(text: &str) -> String {
    plain(text.trim_end().lines().next_back().unwrap_or_default())
}

/// `retry 2 of 3 (attempt 3 of 4)`: both numbers, because one alone is ambiguous.
pub(crate) fn retry_of(retry: u32, allowed: Option<u32>) -> String {
    let attempt = u64::from(retry).saturating_add(1);
    match allowed {
        Some(bound) => {
            let attempts = u64::from(bound).saturating_add(1);
            format!("retry {retry} of {bound} (attempt {attempt} of {attempts})")
        }
        None => format!("retry {retry} (attempt {attempt})"),
    }
}

/// An item as typed after its job.
pub(crate) fn item_argument(name: &str, index: u32) -> String {
    address("", name, index).trim_start_matches('/').to_owned()
}

/// A text of several lines, each as [`plain`] writes it.
pub(crate) fn plain_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(plain).collect();
    lines.join("\n")
}

/// A text of the same length in bytes, for a printer that marks parts of it and escapes the control characters of ASCII itself.
pub(crate) fn masked(text: &str) -> String {
    let masked = |character: char| match character.len_utf8() {
        _ if character.is_ascii_control() || is_plain(character) => character,
        2 => '\u{bf}',
        3 => '\u{fffd}',
        _ => '\u{1f6ab}',
    };
    text.chars().map(masked).collect()
}

/// A text on one line, with control characters escaped.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\t' => plain.push(' '),
            control if control.is_control() => plain.extend(control.escape_debug()),
            // Line separators and direction marks would break the line or change its direction.
            other if !is_plain(other) => plain.extend(other.escape_unicode()),
            other => plain.push(other),
        }
    }
    plain
}
