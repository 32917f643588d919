//! `undaunted ls`: the list of jobs.

use std::io::{self, BufWriter, Write};

use clap::Args;
use undaunted_engine::view::JobLine;
use undaunted_runner::reader::JobReader;
use undaunted_store::Version;

use crate::screen::{jobs, json};
use crate::{Exit, Jobs, Result};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted ls
  undaunted ls --json | jq -r 'select(.status == \"failed\") | .job'")]
pub(crate) struct LsArgs {
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(jobs: &Jobs, args: &LsArgs) -> Result<Exit> {
    let mut lines = Vec::new();
    for listed in jobs.list("")? {
        let id = listed.aggregate.id();
        lines.push(match line(jobs, id, listed.head.version) {
            Ok(line) => line,
            // A damaged job must not hide the others.
            Err(why) => JobLine::unreadable(id, why.to_string().lines().next().unwrap_or_default()),
        });
    }
    lines.sort_by(|a, b| b.submitted_at.cmp(&a.submitted_at).then_with(|| a.job.cmp(&b.job)));
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        for line in &lines {
            json(&mut out, line)?;
        }
    } else {
        jobs::show(&mut out, &lines)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn line(jobs: &Jobs, id: &str, version: Version) -> Result<JobLine> {
    let first = jobs.first(id)?;
    let before_last = Version(version.0.saturating_sub(1));
    let last = jobs.record(id, before_last)?;
    // The last record of an ended job contains its result, so a long history need not be read.
    let ended = first.zip(last).and_then(|(first, last)| JobLine::ended(&first, &last, &jobs.plans));
    if let Some(line) = ended {
        return Ok(line);
    }
    let owner = jobs.owner(id)?.map(|owner| owner.pid);
    let folder = jobs.local.job(id);
    let reader = JobReader::open(&*jobs.store, &folder, id, &jobs.plans)?;
    Ok(JobLine::of(&reader.job, owner))
}
