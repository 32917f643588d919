//! Output as text and as JSON, one file for each kind of view.

use std::io::{self, BufWriter, StdoutLock, Write};

use serde::Serialize;

pub(crate) mod attempts;
pub(crate) mod breakers;
pub(crate) mod dead;
pub(crate) mod diagnostics;
mod duration;
pub(crate) mod events;
pub(crate) mod explain;
#[cfg(test)]
mod fixture;
mod holds;
pub(crate) mod job;
pub(crate) mod jobs;
pub(crate) mod limits;
pub(crate) mod logs;
pub(crate) mod policies;
pub(crate) mod progress;
pub(crate) mod resumes;
pub(crate) mod schedule;
pub(crate) mod summary;
#[cfg(test)]
mod tests;
pub(crate) mod timeline;
mod words;

pub(crate) use words::{count, is_colourful, plain};

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
