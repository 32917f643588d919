//! `undaunted explain`: why a job, an item or a command stands as it does.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::Result;
use clap::Args;
use undaunted_engine::view::forecast;
use undaunted_engine::view::history::History;
use undaunted_runner::clock::Clock;

use super::show::read_late;
use crate::exit::Exit;
use crate::jobs::Jobs;
use crate::past::{Past, Whose};
use crate::screen::explain::{Explained, job_json, job_text};
use undaunted_engine::id::{CommandId, ItemId};

const FORETOLD: usize = 100;

/// What to explain.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted explain @last
  undaunted explain 3f9a/order-41
  undaunted explain 3f9a/#0/charge --json

Everything is rebuilt from what was recorded: the rule that decided, how each delay came
about, every limit before and after, which breaker holds it and until when, why it stopped or
when it goes on, and which limit ends it next.")]
pub(crate) struct ExplainArgs {
    /// The job; an item of it, by its name, the beginning of it, or its place (#0); a command of that
    #[arg(value_name = "JOB[/ITEM[/COMMAND]]")]
    of: String,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(store: Option<&Path>, args: &ExplainArgs) -> Result<Exit> {
    let jobs = Jobs::open(store)?;
    let (id, whose) = Whose::typed(&jobs, &args.of)?;
    let owner = jobs.owner(&id)?;
    let now = Clock::set().now();
    let mut out = BufWriter::new(io::stdout().lock());
    let Whose::One(place, command) = whose else {
        let (job, late) = read_late(&jobs, &id)?;
        let job = (&job, &jobs.breakers_of(&job)?);
        if args.json {
            job_json(&mut out, job, owner.as_ref(), &late)?;
        } else {
            job_text(&mut out, job, owner.as_ref(), now, &late)?;
        }
        out.flush()?;
        return Ok(Exit::Done);
    };
    let past = Past::read(&jobs, &id, |_| [place].into())?;
    let none = History::default();
    let history = past.items.get(&place).unwrap_or(&none);
    let explained = Explained {
        job: &past.job,
        breakers: &past.breakers,
        place,
        command,
        history,
        now,
        is_there: owner.is_some(),
        forecast: foretold(&past, place, command, now),
    };
    if args.json {
        explained.json(&mut out)?;
    } else {
        explained.text(&mut out)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// The forecast, if the item is at the command in question.
fn foretold(
    past: &Past,
    item: ItemId,
    command: Option<CommandId>,
    now: undaunted_policy::Timestamp,
) -> Option<undaunted_engine::view::Forecast> {
    let job = &past.job;
    let at = job.active(item)?.command;
    if job.stage.has_ended() || command.is_some_and(|asked| asked != at) {
        return None;
    }
    forecast(job, &past.breakers, item, now, FORETOLD)
}
