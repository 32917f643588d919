//! `undaunted show`: how a job stands.

use std::env;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use anyhow::Result;
use clap::Args;

use crate::exit::Exit;
use crate::jobs::Jobs;
use crate::opened::OpenedJob;
use crate::screen::{is_colourful, job, json, resumes};

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
    let mut opened = OpenedJob::open(&jobs, &id)?;
    let mut out = BufWriter::new(io::stdout().lock());
    match (args.resumes, args.json) {
        (true, true) => json(&mut out, &opened.resumes())?,
        (true, false) => resumes::show(&mut out, &opened.resumes())?,
        (false, true) => json(&mut out, &opened.view()?)?,
        (false, false) => {
            let paper =
                job::Paper { now: opened.now(), columns: columns(), colour: is_colourful(&io::stdout()) };
            job::show(&mut out, &opened.view()?, &paper)?;
        }
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn columns() -> usize {
    let told = env::var("COLUMNS").ok().and_then(|it| it.parse().ok());
    let out = io::stdout();
    let seen = || {
        let size = out.is_terminal().then(|| rustix::termios::tcgetwinsize(&out));
        Some(usize::from(size?.ok()?.ws_col))
    };
    told.or_else(seen).filter(|wide| *wide > 0).unwrap_or(COLUMNS)
}
