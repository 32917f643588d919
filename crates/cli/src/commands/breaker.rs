//! `undaunted breaker`: the breakers shared by the jobs of a store.

use std::io::{self, BufWriter, Write};

use clap::{Args, Subcommand};
use undaunted_engine::breaker::BreakerFact;
use undaunted_engine::view::{BreakerHistoryView, BreakerView};
use undaunted_policy::Timestamp;
use undaunted_runner::breakers;
use undaunted_runner::clock::Clock;
use undaunted_runner::journal::JournalError;

use crate::screen::{breakers as screen, json as print_json, print};
use crate::{CommandError, Exit, Jobs, Result, StoreUse};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted breaker ls
  undaunted breaker show payments
  undaunted breaker trip payments      # hold its commands for a while
  undaunted breaker reset payments     # release its commands

A command has a breaker if its workflow sets `breaker: true` (named after the origin of an HTTP
request, else WORKFLOW/COMMAND) or `breaker: {name: payments}`. All jobs in a store share it. It
exists once a job has used it. `undaunted explain JOB` shows the items it holds.")]
pub(crate) struct BreakerArgs {
    #[command(subcommand)]
    command: BreakerCommand,
}

#[derive(Debug, Subcommand)]
enum BreakerCommand {
    /// List breakers
    Ls {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Show a breaker and its history
    Show(BreakerArg),
    /// Close a breaker and release its held items one by one
    Reset(BreakerArg),
    /// Open a breaker for its recovery timeout
    Trip(BreakerArg),
}

#[derive(Debug, Args)]
struct BreakerArg {
    /// Name of the breaker
    name: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl BreakerArgs {
    pub(crate) const fn store_use(&self) -> StoreUse {
        match self.command {
            BreakerCommand::Ls { .. } | BreakerCommand::Show(_) => StoreUse::Read,
            BreakerCommand::Reset(_) | BreakerCommand::Trip(_) => StoreUse::Change,
        }
    }
}

pub(crate) fn run(jobs: &Jobs, args: &BreakerArgs) -> Result<Exit> {
    let now = Clock::set().now();
    match &args.command {
        BreakerCommand::Ls { json } => {
            let listed = breakers::list(&*jobs.store)?;
            let views = listed.iter().map(|(name, journal)| BreakerView::of(name, &journal.state));
            let views: Vec<_> = views.collect();
            let mut out = BufWriter::new(io::stdout().lock());
            if *json {
                views.iter().try_for_each(|view| print_json(&mut out, view))?;
            } else {
                screen::list(&mut out, &views, now)?;
            }
            out.flush()?;
        }
        BreakerCommand::Show(breaker) => {
            let journal = breakers::read(&*jobs.store, &breaker.name)?;
            let journal = journal.ok_or_else(|| {
                let breaker = breaker.name.clone();
                CommandError::from(JournalError::NoBreaker { breaker })
            })?;
            let view = BreakerHistoryView::of(&breaker.name, &journal);
            print(&view, breaker.json, |out, view| screen::one(out, view, now))?;
        }
        BreakerCommand::Reset(breaker) => change(jobs, breaker, BreakerFact::Reset { at: now }, now)?,
        BreakerCommand::Trip(breaker) => change(jobs, breaker, BreakerFact::Tripped { at: now }, now)?,
    }
    Ok(Exit::Done)
}

fn change(jobs: &Jobs, breaker: &BreakerArg, fact: BreakerFact, now: Timestamp) -> Result<()> {
    let state = breakers::change(&*jobs.store, &breaker.name, |_| Some(fact))?;
    let view = BreakerView::of(&breaker.name, &state);
    Ok(print(&view, breaker.json, |out, view| screen::changed(out, view, now))?)
}
