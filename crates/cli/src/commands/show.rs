//! `undaunted show`: how a job stands.

use std::collections::BTreeSet;
use std::env;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use anyhow::Result;
use clap::Args;
use undaunted_engine::event::{Event, ItemEvent, Record};
use undaunted_engine::job::Job;
use undaunted_engine::view::history::LateEnd;
use undaunted_runner::clock::Clock;
use undaunted_runner::journal;

use crate::exit::{Exit, Refused};
use crate::jobs::Jobs;
use crate::past::Past;
use crate::screen::limits::Late;
use crate::screen::{is_colourful, job, resumes, timeline};

/// The width if it cannot be found out.
const COLUMNS: usize = 80;

/// The job to show.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted show @last
  undaunted show 3f9a --resumes
  undaunted show 3f9a --json")]
pub(crate) struct ShowArgs {
    /// The job
    #[arg(value_name = "JOB")]
    job: String,

    /// Show what each resume restored instead
    #[arg(long)]
    resumes: bool,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(store: Option<&Path>, args: &ShowArgs) -> Result<Exit> {
    let jobs = Jobs::open(store)?;
    let id = jobs.find(&args.job)?;
    let owner = jobs.owner(&id)?;
    let mut out = BufWriter::new(io::stdout().lock());
    if args.resumes {
        let past = Past::read(&jobs, &id, |_| BTreeSet::new())?;
        if args.json {
            resumes::json(&mut out, &past, owner.as_ref())?;
        } else {
            resumes::show(&mut out, &past, owner.as_ref())?;
        }
        out.flush()?;
        return Ok(Exit::Done);
    }
    let (found, late) = read_late(&jobs, &id)?;
    let drawn = timeline::worth_drawing(&found);
    let past = Past::read(&jobs, &id, |_| drawn.into_iter().collect())?;
    let now = Clock::set().now();
    if args.json {
        job::json(&mut out, &past, owner.as_ref(), now, &late)?;
    } else {
        let paper = job::Paper {
            columns: columns(),
            colour: is_colourful(&io::stdout()),
        };
        job::show(&mut out, &past, owner.as_ref(), now, &late, &paper)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

pub(super) fn read_late(jobs: &Jobs, id: &str) -> Result<(Job, Vec<Late>), Refused> {
    let mut late = Vec::new();
    let read = journal::replay(&*jobs.store, id, &jobs.plans, |_, _, record: &Record| {
        if let Event::Item(ItemEvent::LateResult(found)) = &record.event {
            let end = LateEnd {
                at: record.at,
                reason: found.reason,
                counted: found.counted,
            };
            late.push((found.item(), end));
        }
    });
    Ok((read?.0, late))
}

fn columns() -> usize {
    let told = env::var("COLUMNS").ok().and_then(|it| it.parse().ok());
    let out = io::stdout();
    let seen = || {
        let size = out
            .is_terminal()
            .then(|| rustix::termios::tcgetwinsize(&out));
        Some(usize::from(size?.ok()?.ws_col))
    };
    told.or_else(seen)
        .filter(|wide| *wide > 0)
        .unwrap_or(COLUMNS)
}
