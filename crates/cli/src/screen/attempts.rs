//! Attempts as text: one line each.

use std::io::{self, Write};

use undaunted_engine::view::AttemptView;

use super::{measured, one_line, plain, short};

const WIDEST: usize = 40;

/// The rows that determine the column widths; later rows are printed at once.
const MEASURED: usize = 1000;

type AttemptRow = [String; 6];

/// One row per attempt: `item  command  attempt  when  took  outcome`.
#[derive(Default)]
pub(crate) struct AttemptsTable {
    rows: Vec<AttemptRow>,
    /// Set when the first rows are printed.
    widths: Option<[usize; 5]>,
    rounds: bool,
    waiting: Vec<AttemptView>,
}

impl AttemptsTable {
    pub(crate) fn put(&mut self, out: &mut impl Write, attempt: AttemptView) -> io::Result<()> {
        if let Some(widths) = &self.widths {
            return print(out, widths, &row(&attempt, self.rounds));
        }
        self.waiting.push(attempt);
        if self.waiting.len() < MEASURED {
            return Ok(());
        }
        self.measure(out)
    }

    pub(crate) fn end(mut self, out: &mut impl Write) -> io::Result<()> {
        if self.widths.is_none() && self.waiting.is_empty() {
            return writeln!(out, "no attempts yet");
        }
        self.measure(out)
    }

    /// Determines the column widths from the rows so far, and prints them.
    fn measure(&mut self, out: &mut impl Write) -> io::Result<()> {
        if self.widths.is_some() {
            return Ok(());
        }
        self.rounds = self.waiting.iter().any(|attempt| attempt.round > 1);
        self.rows.push(["item", "command", "attempt", "when", "took", "outcome"].map(str::to_owned));
        let rows = self.waiting.drain(..);
        let rounds = self.rounds;
        self.rows.extend(rows.map(|attempt| row(&attempt, rounds)));
        let width = |column: usize| {
            let texts = self.rows.iter().filter_map(|row| row.get(column));
            texts.map(|text| text.chars().count()).max().unwrap_or_default().min(WIDEST)
        };
        let widths = [0, 1, 2, 3, 4].map(width);
        self.widths = Some(widths);
        let mut rows = self.rows.drain(..);
        rows.try_for_each(|row| print(out, &widths, &row))
    }
}

fn print(out: &mut impl Write, widths: &[usize; 5], row: &AttemptRow) -> io::Result<()> {
    let [of_item, of_command, of_attempt, of_when, of_took] = *widths;
    let [item, command, attempt, when, took, outcome] = row;
    let line = format!(
        "{item:of_item$}  {command:of_command$}  {attempt:>of_attempt$}  {when:of_when$}  \
         {took:>of_took$}  {outcome}"
    );
    writeln!(out, "{}", line.trim_end())
}

fn row(attempt: &AttemptView, rounds: bool) -> AttemptRow {
    let number = if rounds || attempt.round > 1 {
        format!("{} (round {})", attempt.attempt, attempt.round)
    } else {
        attempt.attempt.to_string()
    };
    let took = attempt.duration_ms.map(|took| measured(took.0));
    [
        plain(&attempt.item),
        plain(attempt.command.as_deref().unwrap_or_default()),
        number,
        attempt.at.to_string(),
        took.unwrap_or_default(),
        outcome(attempt),
    ]
}

/// `failed: exit status 1: no answer; retry 1 in 2s`
fn outcome(attempt: &AttemptView) -> String {
    let Some(failure) = &attempt.failure else {
        return attempt.outcome.to_owned();
    };
    let error = match one_line(attempt.error.as_deref().unwrap_or_default()).as_str() {
        "" => String::new(),
        line => format!(": {line}"),
    };
    let then = match attempt.retry.zip(attempt.delay_ms) {
        Some((retry, delay)) => format!("; retry {retry} in {}", short(delay.0)),
        None => String::new(),
    };
    format!("failed: {failure}{error}{then}")
}
