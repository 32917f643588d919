//! The binary `undaunted`.
//!
//! Parses the command line, runs one command, and turns its result into an exit code.
//! Results go to standard output, everything else to standard error.

mod args;
mod commands;
mod confirmation;
mod environment;
mod exit;
mod flag_values;
mod foreground;
mod jobs;
mod opened;
mod passing;
mod retry_flags;
mod screen;
mod typed;
mod webhooks;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use undaunted_runner::keeper::{self, WaitingKeeper};
use undaunted_runner::request::JobRequest;

use args::{Cli, CliCommand};
use confirmation::Confirmation;
use exit::{CommandError, Exit, Result};
use jobs::{ClaimOrOwner, Jobs, KEEPER, StorePlace, StoreUse, own_binary};
use opened::{JobTarget, OpenedJob};
use passing::OutputPrinter;
use retry_flags::RetryFlags;
use screen::progress::{Display, Quietness};
use typed::TypedCommand;

fn main() -> ExitCode {
    if let Some(spool) = keeper_spool() {
        return exit::code(keep(&spool));
    }
    let waiting = launch_keeper();
    let args = match Cli::read() {
        Ok(args) => args,
        Err(wrong) => return exit::of_usage(&wrong),
    };
    let store = args.store.as_deref();
    let jobs = |what| Jobs::open_for(store, what);
    let (read, change) = (StoreUse::Read, StoreUse::Change);
    let done = match args.command {
        CliCommand::Run(it) => commands::run::run(store, &it, waiting),
        CliCommand::Exec(it) => return exit::of_exec(commands::exec::run(store, &it, waiting)),
        CliCommand::Map(it) => commands::map::run(store, &it, waiting),
        CliCommand::Serve(it) => commands::serve::run(store, &it),
        CliCommand::Resume(it) => jobs(change).and_then(|jobs| commands::resume::run(&jobs, &it)),
        CliCommand::Ls(it) => jobs(read).and_then(|jobs| commands::ls::run(&jobs, &it)),
        CliCommand::Show(it) => jobs(read).and_then(|jobs| commands::show::run(&jobs, &it)),
        CliCommand::Events(it) => jobs(read).and_then(|jobs| commands::events::run(&jobs, &it)),
        CliCommand::Explain(it) => jobs(read).and_then(|jobs| commands::explain::run(&jobs, &it)),
        CliCommand::Logs(it) => jobs(read).and_then(|jobs| commands::logs::run(&jobs, &it)),
        CliCommand::State(it) => commands::state::run(store, &it),
        CliCommand::Attempts(it) => jobs(read).and_then(|jobs| commands::attempts::run(&jobs, &it)),
        CliCommand::Cancel(it) => jobs(change).and_then(|jobs| commands::cancel::run(&jobs, &it)),
        CliCommand::Pause(it) => {
            jobs(change).and_then(|jobs| commands::pause::run(&jobs, &it, JobRequest::Pause))
        }
        CliCommand::Unpause(it) => {
            jobs(change).and_then(|jobs| commands::pause::run(&jobs, &it, JobRequest::Unpause))
        }
        CliCommand::Dlq(it) => jobs(it.store_use()).and_then(|jobs| commands::dlq::run(&jobs, &it)),
        CliCommand::Budget(it) => jobs(it.store_use()).and_then(|jobs| commands::budget::run(&jobs, &it)),
        CliCommand::Breaker(it) => jobs(it.store_use()).and_then(|jobs| commands::breaker::run(&jobs, &it)),
        CliCommand::Rm(it) => jobs(StoreUse::Remove).and_then(|jobs| commands::rm::rm(&jobs, &it)),
        CliCommand::Prune(it) => jobs(it.store_use()).and_then(|jobs| commands::rm::prune(&jobs, &it)),
        CliCommand::Archive(it) => jobs(change).and_then(|jobs| commands::archive::run(&jobs, &it)),
        CliCommand::Restore(it) => {
            jobs(StoreUse::Add).and_then(|jobs| commands::archive::restore_files(&jobs, &it))
        }
        CliCommand::Store(it) => commands::store::run(store, &it),
        CliCommand::Doctor(it) => commands::doctor::run(store, &it),
        CliCommand::Completions(it) => commands::generated::completions(&it).map(|()| Exit::Done),
        CliCommand::Man => commands::generated::man().map(|()| Exit::Done),
        CliCommand::Check(it) => commands::check::run(&it).map(|()| Exit::Done),
        CliCommand::Schedule(it) => commands::schedule::run(&it).map(|()| Exit::Done),
        CliCommand::ExplainConfig(it) => commands::explain_config::run(&it).map(|()| Exit::Done),
        CliCommand::Schema => commands::generated::schema().map(|()| Exit::Done),
    };
    exit::code(done)
}

/// Starts a keeper before anything else if the command will probably need one: it takes as long to start as all that
/// this process does until then. A keeper that is not needed exits when this is dropped.
fn launch_keeper() -> Option<WaitingKeeper> {
    let mut words = std::env::args_os().skip(1);
    let mut first = words.next()?;
    if first == "--store" {
        first = words.nth(1)?;
    } else if first.to_string_lossy().starts_with("--store=") {
        first = words.next()?;
    }
    let is_needed = first == "run" || first == "exec" || first == "map";
    let start = || WaitingKeeper::start(&own_binary(), &[KEEPER.into()]).ok();
    is_needed.then(start).flatten()
}

/// The spool, if this process was started as `undaunted keeper [FOLDER]`, the process that starts commands and
/// outlives the engine. Without a folder, the engine sends it.
///
/// Every job with programs starts one and waits for it, so it is recognised before clap is set up, which
/// takes longer than everything else until the keeper is ready.
fn keeper_spool() -> Option<PathBuf> {
    let mut words = std::env::args_os().skip(1);
    words.next().filter(|first| first == KEEPER)?;
    let folder = match words.next() {
        Some(folder) => PathBuf::from(folder),
        None => keeper::folder_from_engine()?,
    };
    (folder.is_absolute() && words.next().is_none()).then_some(folder)
}

fn keep(spool: &Path) -> Result<Exit> {
    match keeper::main(spool) {
        Ok(never) => match never {},
        Err(error) => Err(error.into()),
    }
}
