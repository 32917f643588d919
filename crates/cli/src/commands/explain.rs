//! `undaunted explain`: why a job, an item or a command has its status.

use std::path::Path;

use anyhow::Result;
use clap::Args;

use crate::exit::Exit;
use crate::jobs::Jobs;
use crate::opened::JobTarget;
use crate::screen::{explain, print};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted explain @last
  undaunted explain 3f9a/order-41
  undaunted explain 3f9a/#0/charge --json

Explains from the recorded events: the rule that decided, the arithmetic of each delay, every limit
before and after, the breaker that holds an item and until when, why it stopped or when it
continues, and the limit that will stop it next.")]
pub(crate) struct ExplainArgs {
    /// The job, optionally with an item (name, unique prefix, or index: #0) and a command
    #[arg(value_name = "JOB[/ITEM[/COMMAND]]")]
    of: String,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(store: Option<&Path>, args: &ExplainArgs) -> Result<Exit> {
    let jobs = Jobs::open(store)?;
    let (mut opened, target) = JobTarget::open(&jobs, &args.of)?;
    let now = opened.now();
    match target {
        JobTarget::Job => {
            print(&opened.explanation()?, args.json, |out, view| explain::job(out, view, now))?;
        }
        JobTarget::Item(item, command) => {
            print(&opened.item(item, command)?, args.json, |out, view| explain::item(out, view, now))?;
        }
    }
    Ok(Exit::Done)
}
