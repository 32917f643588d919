//! `undaunted explain`: why a job, an item or a command has its status.

use clap::Args;

use crate::screen::{explain, print};
use crate::{Exit, JobTarget, Jobs, Result};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted explain @last
  undaunted explain 3f9a/order-41
  undaunted explain 3f9a/#0/charge --json

Shows, from the recorded events, which rule decided, how each delay was computed, how much of every
limit was used before and after, which breaker holds an item and until when, why it stopped or when
it continues, and which limit will stop it.")]
pub(crate) struct ExplainArgs {
    /// The job, optionally with an item (name, unique prefix or index: JOB/#0) and a command
    #[arg(value_name = "JOB[/ITEM[/COMMAND]]")]
    of: String,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(jobs: &Jobs, args: &ExplainArgs) -> Result<Exit> {
    let (mut opened, target) = JobTarget::open(jobs, &args.of)?;
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
