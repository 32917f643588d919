//! Attempts as text: one line each.

use std::io::{self, Write};

use undaunted_engine::decide::cause_in_words;
use undaunted_engine::job::Job;
use undaunted_engine::view::history::PastAttempt;
use undaunted_engine::view::rfc3339;

use super::duration::{measured, short};
use super::words::one_line;

const WIDEST: usize = 40;

/// `item  command  attempt  when  took  outcome  then`
pub(crate) fn table(out: &mut impl Write, job: &Job, attempts: &[&PastAttempt]) -> io::Result<()> {
    if attempts.is_empty() {
        return writeln!(out, "no attempt was started yet");
    }
    let rounds = attempts.iter().any(|attempt| attempt.round > 1);
    let mut rows =
        vec![["item", "command", "attempt", "when", "took", "outcome"].map(str::to_owned)];
    rows.extend(attempts.iter().map(|attempt| row(job, attempt, rounds)));
    let width = |column: usize| {
        let texts = rows.iter().filter_map(|row| row.get(column));
        let widths = texts.map(|text| text.chars().count());
        widths.max().unwrap_or_default().min(WIDEST)
    };
    let [item, command, attempt, when, took] = [0, 1, 2, 3, 4].map(width);
    for [a, b, c, d, e, f] in &rows {
        let line = format!("{a:item$}  {b:command$}  {c:>attempt$}  {d:when$}  {e:>took$}  {f}");
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn row(job: &Job, attempt: &PastAttempt, rounds: bool) -> [String; 6] {
    let of = attempt.of;
    let command = job.plan().command(of.command);
    let number = if rounds {
        format!("{} (round {})", of.attempt, attempt.round)
    } else {
        of.attempt.to_string()
    };
    let took = attempt.outcome.as_ref().map(|it| measured(it.took));
    [
        job.identity(of.item()).to_owned(),
        command.map_or_else(String::new, |command| command.id.clone()),
        number,
        rfc3339(attempt.began),
        took.unwrap_or_default(),
        outcome(attempt),
    ]
}

/// `failed: exit status 1: no answer; retry 1 in 2s`
fn outcome(attempt: &PastAttempt) -> String {
    let failure = attempt.outcome.as_ref();
    let Some(failure) = failure.and_then(|outcome| outcome.failure.as_ref()) else {
        return attempt.word().to_owned();
    };
    let cause = cause_in_words(failure.cause);
    let error = match one_line(&failure.error).as_str() {
        "" => String::new(),
        line => format!(": {line}"),
    };
    let then = match attempt.retry {
        Some(planned) => format!("; retry {} in {}", planned.sum.retry, short(planned.delay)),
        None => String::new(),
    };
    format!("failed: {cause}{error}{then}")
}
