//! `undaunted attempts`: every attempt of a job or of one item.

use std::io::{self, BufWriter, Write};

use clap::Args;
use undaunted_engine::view::{self, AttemptView};

use crate::screen::attempts::AttemptsTable;
use crate::screen::json;
use crate::{Exit, JobTarget, Jobs, Result};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted attempts @last
  undaunted attempts 3f9a/order-41
  undaunted attempts 3f9a/#0 --json | jq 'select(.outcome == \"failed\") | .error'")]
pub(crate) struct AttemptsArgs {
    /// The job, optionally with an item: its name, a unique prefix, or its index (JOB/#0)
    #[arg(value_name = "JOB[/ITEM]")]
    of: String,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(jobs: &Jobs, args: &AttemptsArgs) -> Result<Exit> {
    let (mut opened, target) = JobTarget::open(jobs, &args.of)?;
    let out = BufWriter::new(io::stdout().lock());
    let mut output = AttemptOutput { out, table: (!args.json).then(AttemptsTable::default) };
    match target {
        // One at a time, so that a million attempts take no more memory than one.
        JobTarget::Job => opened.reader.each_attempt(|job, found| output.put(view::attempt(job, found)))?,
        JobTarget::Item(item, _) => {
            let mut histories = opened.histories([item])?;
            let mut found = histories.remove(&item).unwrap_or_default().attempts;
            found.retain(|attempt| target.includes_command(attempt.of.command));
            found.sort_by_key(|attempt| (attempt.began, attempt.of));
            for attempt in &found {
                output.put(view::attempt(opened.job(), attempt))?;
            }
        }
    }
    output.end()?;
    Ok(Exit::Done)
}

struct AttemptOutput<W: Write> {
    out: W,
    /// `None` for JSON.
    table: Option<AttemptsTable>,
}

impl<W: Write> AttemptOutput<W> {
    fn put(&mut self, attempt: AttemptView) -> Result<()> {
        match &mut self.table {
            Some(table) => table.put(&mut self.out, attempt)?,
            None => json(&mut self.out, &attempt)?,
        }
        Ok(())
    }

    fn end(mut self) -> Result<()> {
        if let Some(table) = self.table {
            table.end(&mut self.out)?;
        }
        Ok(self.out.flush()?)
    }
}
