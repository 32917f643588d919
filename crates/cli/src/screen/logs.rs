//! The output of commands, as they wrote it.
//!
//! The output of the commands goes to standard output and standard error. Headings go to standard error, so that
//! redirected output contains nothing else.

use std::io::{self, Write};

use serde::Serialize;
use undaunted_engine::job::Job;
use undaunted_engine::view::history::PastAttempt;

use super::{json, plain};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Out,
    Err,
}

impl Stream {
    pub(crate) const BOTH: [Self; 2] = [Self::Out, Self::Err];

    const fn word(self) -> &'static str {
        match self {
            Self::Out => "stdout",
            Self::Err => "stderr",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    item: String,
    command: String,
    attempt: u32,
    round: u32,
}

impl Label {
    pub(crate) fn of(job: &Job, attempt: &PastAttempt) -> Self {
        let of = attempt.of;
        let command = job.plan().command(of.command);
        Self {
            item: job.identity(of.item()).to_owned(),
            command: command.map_or_else(String::new, |command| command.id.clone()),
            attempt: of.attempt.0,
            round: attempt.round,
        }
    }

    fn heading(&self) -> String {
        let command = if self.command == self.item { String::new() } else { format!(", {}", self.command) };
        let round = match self.round {
            1 => String::new(),
            round => format!(" of round {round}"),
        };
        plain(&format!("{}{command}, attempt {}{round}", self.item, self.attempt))
    }
}

/// A piece of output, or the number of bytes that were not kept.
#[derive(Serialize)]
struct PieceJson<'p> {
    item: &'p str,
    command: &'p str,
    attempt: u32,
    round: u32,
    stream: &'p str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'p str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped: Option<u64>,
}

pub(crate) struct LogOutput {
    json: bool,
    pub(crate) many: bool,
    last: Option<Label>,
}

impl LogOutput {
    pub(crate) const fn new(json: bool) -> Self {
        Self { json, many: false, last: None }
    }

    pub(crate) fn piece(&mut self, label: &Label, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.json {
            let text = String::from_utf8_lossy(bytes);
            return Self::line(label, stream, Some(&text), None);
        }
        self.head(label)?;
        match stream {
            Stream::Out => {
                let mut out = io::stdout().lock();
                out.write_all(bytes)?;
                out.flush()
            }
            Stream::Err => io::stderr().lock().write_all(bytes),
        }
    }

    /// Reports that a part of the output was not kept.
    pub(crate) fn dropped(&mut self, label: &Label, stream: Stream, bytes: u64) -> io::Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        if self.json {
            return Self::line(label, stream, None, Some(bytes));
        }
        self.head(label)?;
        let word = stream.word();
        writeln!(io::stderr(), "\n… {bytes} bytes of {word} were not kept …")
    }

    fn head(&mut self, label: &Label) -> io::Result<()> {
        if !self.many || self.last.as_ref() == Some(label) {
            return Ok(());
        }
        self.last = Some(label.clone());
        writeln!(io::stderr(), "== {} ==", label.heading())
    }

    fn line(label: &Label, stream: Stream, text: Option<&str>, dropped: Option<u64>) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let shown = PieceJson {
            item: &label.item,
            command: &label.command,
            attempt: label.attempt,
            round: label.round,
            stream: stream.word(),
            text,
            dropped,
        };
        json(&mut out, &shown)?;
        out.flush()
    }
}
