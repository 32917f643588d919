//! Dead letters: the list, one with all its attempts, and groups.

use std::io::{self, Write};

use undaunted_engine::view::{AttemptView, DeadLetterGroup, DeadLetterLine, DeadLetterView};
use undaunted_policy::Reason;

use super::words::{address, item_argument};
use super::{count, error_lines, plain, quoted, short};

/// The most names of a group that are shown, and the most characters of them.
pub(crate) const SHOWN_NAMES: usize = 5;
const WIDEST: usize = 90;

fn command(attempt: &AttemptView) -> String {
    plain(attempt.command.as_deref().unwrap_or_default())
}

pub(crate) fn line(out: &mut impl Write, letter: &DeadLetterLine) -> io::Result<()> {
    let tried = match (&letter.command, letter.attempts) {
        (Some(command), 1..) => {
            let attempts = count(letter.attempts, "attempt", "attempts");
            format!("{attempts} of {}", plain(command))
        }
        _ => "never tried".to_owned(),
    };
    let reason = letter.reason.sentence();
    let error = letter.error.as_deref().unwrap_or_default();
    // Without output of the command, the error repeats the reason, and for a pool adds its numbers.
    let error = match error.split_once("; last error: ") {
        Some((why, last)) if why.starts_with(reason) => match why.split_once(": ") {
            Some((_, numbers)) => format!("{numbers}; last error: {last}"),
            None => last.to_owned(),
        },
        _ => error.to_owned(),
    };
    writeln!(
        out,
        "{}  {reason} ({tried}): {}",
        plain(&letter.item),
        plain(error.lines().last().unwrap_or_default()),
    )
}

/// The commands to type next.
pub(crate) fn next(out: &mut impl Write, job: &str) -> io::Result<()> {
    writeln!(out, "show:   undaunted dlq show {job} ITEM        undaunted dlq group {job}")?;
    writeln!(out, "again:  undaunted dlq redrive {job}")
}

pub(crate) fn show(out: &mut impl Write, job: &str, letter: &DeadLetterView) -> io::Result<()> {
    let name = plain(&letter.item);
    writeln!(out, "{name}")?;
    writeln!(out, "  input    {}", plain(&letter.input.to_string()))?;
    let reason = letter.reason.map(Reason::word).unwrap_or_default();
    writeln!(out, "  reason   {reason}")?;
    let error = letter.error.as_deref().unwrap_or_default();
    writeln!(out, "  error    {}", error_lines(error).join("\n           "))?;
    for attempt in &letter.attempts {
        writeln!(out, "  {}", tried_once(attempt))?;
    }
    writeln!(out, "  why:     undaunted explain {}", quoted(&address(job, &letter.item, letter.index)))?;
    writeln!(
        out,
        "  again:   undaunted dlq redrive {job} {}",
        quoted(&item_argument(&letter.item, letter.index))
    )
}

fn tried_once(attempt: &AttemptView) -> String {
    let outcome = match attempt.duration_ms {
        None => "running".to_owned(),
        Some(took) => {
            let how = attempt.failure.as_deref().unwrap_or("succeeded");
            format!("{how} after {}", short(took.0))
        }
    };
    let next = match attempt.delay_ms {
        Some(delay) => format!(", then {} delay", short(delay.0)),
        None => String::new(),
    };
    let round = match attempt.round {
        1 => String::new(),
        round => format!("round {round}, "),
    };
    format!("{}  {round}{} attempt {}: {outcome}{next}", attempt.at, command(attempt), attempt.attempt)
}

pub(crate) fn group(out: &mut impl Write, group: &DeadLetterGroup) -> io::Result<()> {
    let names: Vec<String> = group.items.iter().take(SHOWN_NAMES).map(|name| plain(name)).collect();
    let long = names.iter().map(String::len).sum::<usize>() > WIDEST;
    let few = usize::try_from(group.count).is_ok_and(|count| count <= SHOWN_NAMES);
    let more = if few && !long { "" } else { " …" };
    writeln!(out, "{:>6}  {}  {}", group.count, group.signature_id, plain(&group.signature))?;
    let names: String = names.join(", ").chars().take(WIDEST).collect();
    writeln!(out, "        {names}{more}")
}

/// The command to type after a list of groups.
pub(crate) fn next_of_groups(out: &mut impl Write, job: &str, group: &str) -> io::Result<()> {
    writeln!(out, "again:  undaunted dlq redrive {job} --group {group}")
}
