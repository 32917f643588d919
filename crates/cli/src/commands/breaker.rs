//! `undaunted breaker`: the breakers that jobs of a store share.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::Result;
use clap::{Args, Subcommand};
use undaunted_engine::breaker::BreakerFact;
use undaunted_engine::view::{BreakerHistoryView, BreakerView};
use undaunted_policy::Timestamp;
use undaunted_runner::breakers;
use undaunted_runner::clock::Clock;

use crate::exit::{CommandError, Exit};
use crate::jobs::Jobs;
use crate::screen::{breakers as screen, json as print_json};

/// What to do with the breakers of the store.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted breaker ls
  undaunted breaker show payments
  undaunted breaker trip payments      # nothing that names it starts for a while
  undaunted breaker reset payments     # let everything through again

A command has a breaker if its workflow says `breaker: true` (named after the origin of an HTTP
request, else WORKFLOW/COMMAND) or `breaker: {name: payments}`. All jobs of a store share it; it
is there from the first job on that uses it. `explain JOB` says what it holds.")]
pub(crate) struct BreakerArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List them
    Ls {
        /// Print one JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Show one, and what has happened to it
    Show(One),
    /// Close one by hand: what it holds goes on, one after the other
    Reset(One),
    /// Open one by hand: nothing that names it starts before its recovery timeout has passed
    Trip(One),
}

#[derive(Debug, Args)]
struct One {
    /// The breaker
    #[arg(value_name = "NAME")]
    name: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(store: Option<&Path>, args: &BreakerArgs) -> Result<Exit> {
    let jobs = Jobs::open(store)?;
    let now = Clock::set().now();
    match &args.what {
        What::Ls { json } => {
            let found = breakers::list(&*jobs.store).map_err(CommandError::from)?;
            let mut out = BufWriter::new(io::stdout().lock());
            let found = found.iter();
            let found = found.map(|(name, journal)| BreakerView::of(name, &journal.state));
            let found: Vec<_> = found.collect();
            if *json {
                found.iter().try_for_each(|it| print_json(&mut out, it))?;
            } else {
                screen::list(&mut out, &found, now)?;
            }
            out.flush()?;
        }
        What::Show(one) => {
            let journal = breakers::read(&*jobs.store, &one.name).map_err(CommandError::from)?;
            let journal = journal.ok_or_else(|| unknown(&one.name))?;
            let mut out = BufWriter::new(io::stdout().lock());
            let shown = BreakerHistoryView::of(&one.name, &journal);
            if one.json {
                print_json(&mut out, &shown)?;
            } else {
                screen::one(&mut out, &shown, now)?;
            }
            out.flush()?;
        }
        What::Reset(one) => change(&jobs, one, BreakerFact::Reset { at: now }, now)?,
        What::Trip(one) => change(&jobs, one, BreakerFact::Tripped { at: now }, now)?,
    }
    Ok(Exit::Done)
}

fn change(jobs: &Jobs, one: &One, fact: BreakerFact, now: Timestamp) -> Result<()> {
    let change = |_: &_| Some(fact);
    let state = breakers::change(&*jobs.store, &one.name, change).map_err(CommandError::from)?;
    let shown = BreakerView::of(&one.name, &state);
    let mut out = io::stdout().lock();
    if one.json {
        print_json(&mut out, &shown)?;
    } else {
        screen::changed(&mut out, &shown, now)?;
    }
    Ok(())
}

fn unknown(name: &str) -> CommandError {
    let breaker = name.to_owned();
    undaunted_runner::journal::JournalError::NoBreaker { breaker }.into()
}
