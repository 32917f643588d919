//! `undaunted attempts`: every attempt of a job or of one item.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::Result;
use clap::Args;
use undaunted_engine::view;
use undaunted_engine::view::history::PastAttempt;

use crate::exit::Exit;
use crate::jobs::Jobs;
use crate::past::{Past, Whose};
use crate::screen::attempts;

/// Whose attempts to list.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted attempts @last
  undaunted attempts 3f9a/order-41
  undaunted attempts 3f9a/#0 --json | jq 'select(.outcome == \"failed\") | .error'")]
pub(crate) struct AttemptsArgs {
    /// The job, and an item of it: by its name, the beginning of it, or its place (#0)
    #[arg(value_name = "JOB[/ITEM]")]
    of: String,

    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(store: Option<&Path>, args: &AttemptsArgs) -> Result<Exit> {
    let jobs = Jobs::open(store)?;
    let (id, whose) = Whose::typed(&jobs, &args.of)?;
    let past = Past::read(&jobs, &id, |job| whose.items(job))?;
    let all = past.items.values().flat_map(|history| &history.attempts);
    let mut all: Vec<&PastAttempt> = all
        .filter(|attempt| whose.includes_command(attempt.of.command))
        .collect();
    all.sort_by_key(|attempt| (attempt.began, attempt.of));
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        for attempt in all {
            serde_json::to_writer(&mut out, &view::attempt(&past.job, attempt))?;
            writeln!(out)?;
        }
    } else {
        attempts::table(&mut out, &past.job, &all)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}
