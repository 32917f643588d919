//! The binary `undaunted`.
//!
//! Parses the command line, runs one command, and turns its result into an exit code.
//! Results go to standard output, everything else to standard error.

mod args;
mod commands;
mod environment;
mod exit;
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

use undaunted_runner::request::JobRequest;

use crate::args::{Cli, CliCommand};
use crate::exit::Exit;

fn main() -> ExitCode {
    if let Some(spool) = keeper_spool() {
        return exit::code(keep(&spool));
    }
    let args = match Cli::read() {
        Ok(args) => args,
        Err(wrong) => return exit::of_usage(&wrong),
    };
    let store = args.store.as_deref();
    let done = match args.command {
        CliCommand::Run(it) => commands::run::run(store, &it),
        CliCommand::Exec(it) => return exit::of_exec(commands::exec::run(store, &it)),
        CliCommand::Map(it) => commands::map::run(store, &it),
        CliCommand::Serve(it) => commands::serve::run(store, &it),
        CliCommand::Resume(it) => commands::resume::run(store, &it),
        CliCommand::Ls(it) => commands::ls::run(store, &it),
        CliCommand::Show(it) => commands::show::run(store, &it),
        CliCommand::Events(it) => commands::events::run(store, &it),
        CliCommand::Explain(it) => commands::explain::run(store, &it),
        CliCommand::Logs(it) => commands::logs::run(store, &it),
        CliCommand::State(it) => commands::state::run(store, &it),
        CliCommand::Attempts(it) => commands::attempts::run(store, &it),
        CliCommand::Cancel(it) => commands::cancel::run(store, &it),
        CliCommand::Pause(it) => commands::pause::run(store, &it, JobRequest::Pause),
        CliCommand::Unpause(it) => commands::pause::run(store, &it, JobRequest::Unpause),
        CliCommand::Dlq(it) => commands::dlq::run(store, &it),
        CliCommand::Budget(it) => commands::budget::run(store, &it),
        CliCommand::Breaker(it) => commands::breaker::run(store, &it),
        CliCommand::Rm(it) => commands::rm::rm(store, &it),
        CliCommand::Prune(it) => commands::rm::prune(store, &it),
        CliCommand::Archive(it) => commands::archive::run(store, &it),
        CliCommand::Restore(it) => commands::archive::restore_files(store, &it),
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

/// The spool, if this process was started as `undaunted keeper FOLDER`, the process that starts commands and
/// outlives the engine.
///
/// Every job with programs starts one and waits for it, so it is recognised before clap is set up, which
/// takes longer than everything else until the keeper is ready.
fn keeper_spool() -> Option<PathBuf> {
    let mut words = std::env::args_os().skip(1);
    words.next().filter(|first| first == "keeper")?;
    let folder = PathBuf::from(words.next()?);
    (folder.is_absolute() && words.next().is_none()).then_some(folder)
}

fn keep(spool: &Path) -> anyhow::Result<Exit> {
    match undaunted_runner::keeper::main(spool) {
        Ok(never) => match never {},
        Err(error) => Err(error.into()),
    }
}
