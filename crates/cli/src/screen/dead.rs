//! Dead letters: what failed, why, and everything that was tried.

use std::io::{self, Write};

use serde_json::{Value, json};
use undaunted_engine::decide::cause_in_words;
use undaunted_engine::id::ItemId;
use undaunted_engine::job::Job;
use undaunted_engine::view::history::{History, PastAttempt};
use undaunted_engine::view::{self, rfc3339};
use undaunted_policy::Reason;

use super::duration::short;
use super::summary::error_lines;
use super::words::{count, plain, quoted};

/// How many names of a group are shown, and how many characters of them.
const NAMED: usize = 5;
const WIDEST: usize = 90;

/// The last error of a dead letter, without the reason it was stopped for.
pub(crate) fn last_error<'h>(job: &Job, history: &'h History) -> &'h str {
    let failures = of_commands(job, history).rev();
    let mut failures = failures.filter_map(|it| it.outcome.as_ref()?.failure.as_ref());
    match failures.next() {
        Some(failure) if !failure.error.is_empty() => &failure.error,
        _ => history
            .end
            .as_ref()
            .and_then(|end| end.error.as_deref())
            .unwrap_or_default(),
    }
}

/// The attempts of an item's commands, without those of handlers.
fn of_commands<'h>(
    job: &Job,
    history: &'h History,
) -> impl DoubleEndedIterator<Item = &'h PastAttempt> {
    let attempts = history.attempts.iter();
    attempts.filter(|attempt| job.plan().is_main(attempt.of.command))
}

/// The object of `dlq ls --json`.
pub(crate) fn json(job: &Job, place: ItemId, input: &Value, history: &History) -> Value {
    let end = history.end.as_ref();
    let attempts = history.attempts.iter().map(|it| view::attempt(job, it));
    let attempts: Vec<_> = attempts.collect();
    json!({
        "item": job.identity(place),
        "index": place.index,
        "input": input,
        "reason": end.and_then(|end| end.reason).map(Reason::word),
        "error": end.and_then(|end| end.error.as_deref()),
        "at": end.map(|end| rfc3339(end.at)),
        "round": history.round,
        "correlation_id": undaunted_engine::task::correlation_id(job, place),
        "attempts": attempts,
    })
}

/// How often the failed command was tried in the last round.
fn tried(job: &Job, history: &History) -> String {
    let Some(last) = of_commands(job, history).next_back() else {
        return "never tried".to_owned();
    };
    let attempts = history.attempts.iter();
    let same = attempts.filter(|it| it.round == last.round && it.of.command == last.of.command);
    let command = job.plan().command(last.of.command);
    let command = command.map_or("", |command| command.id.as_str());
    let attempts = count(same.count(), "attempt", "attempts");
    format!("{attempts} of {command}")
}

pub(crate) fn list(
    out: &mut impl Write,
    job: &Job,
    letters: &[(ItemId, History)],
) -> io::Result<()> {
    if letters.is_empty() {
        return writeln!(out, "job {} has no dead letters", job.id());
    }
    for (place, history) in letters {
        let reason = history.end.as_ref().and_then(|end| end.reason);
        let error = plain(last_error(job, history).lines().last().unwrap_or_default());
        writeln!(
            out,
            "{}  {} ({}): {error}",
            plain(job.identity(*place)),
            reason.map(Reason::sentence).unwrap_or_default(),
            tried(job, history),
        )?;
    }
    let id = job.id();
    writeln!(
        out,
        "look:   undaunted dlq show {id} ITEM        undaunted dlq group {id}"
    )?;
    writeln!(out, "again:  undaunted dlq redrive {id}")
}

pub(crate) fn show(
    out: &mut impl Write,
    job: &Job,
    place: ItemId,
    input: &Value,
    history: &History,
) -> io::Result<()> {
    writeln!(out, "{}", plain(job.identity(place)))?;
    writeln!(out, "  input    {input}")?;
    if let Some(end) = &history.end {
        let reason = end.reason.map(Reason::word).unwrap_or_default();
        writeln!(out, "  reason   {reason}")?;
        let error = end.error.as_deref().unwrap_or_default();
        writeln!(
            out,
            "  error    {}",
            error_lines(error).join("\n           ")
        )?;
    }
    for attempt in &history.attempts {
        let command = job.plan().command(attempt.of.command);
        let command = command.map_or("", |command| command.id.as_str());
        let outcome = match &attempt.outcome {
            None => "runs".to_owned(),
            Some(outcome) => {
                let how = match &outcome.failure {
                    None => "succeeded".to_owned(),
                    Some(failure) => cause_in_words(failure.cause),
                };
                format!("{how} after {}", short(outcome.took))
            }
        };
        let next = match &attempt.retry {
            Some(retry) => format!(", then a delay of {}", short(retry.delay)),
            None => String::new(),
        };
        let round = match attempt.round {
            1 => String::new(),
            round => format!("round {round}, "),
        };
        writeln!(
            out,
            "  {}  {round}{command} attempt {}: {outcome}{next}",
            rfc3339(attempt.began),
            attempt.of.attempt
        )?;
    }
    let name = plain(job.identity(place));
    writeln!(
        out,
        "  why:     undaunted explain {}",
        quoted(&format!("{}/{name}", job.id()))
    )?;
    writeln!(
        out,
        "  again:   undaunted dlq redrive {} {}",
        job.id(),
        quoted(&name)
    )
}

pub(crate) fn group(
    out: &mut impl Write,
    job: &Job,
    signature: &str,
    places: &[ItemId],
) -> io::Result<()> {
    let names: Vec<String> = places
        .iter()
        .take(NAMED)
        .map(|place| plain(job.identity(*place)))
        .collect();
    let long = names.iter().map(String::len).sum::<usize>() > WIDEST;
    let more = if places.len() > NAMED || long {
        " …"
    } else {
        ""
    };
    writeln!(out, "{:>6}  {}", places.len(), plain(signature))?;
    let names: String = names.join(", ").chars().take(WIDEST).collect();
    writeln!(out, "        {names}{more}")
}
