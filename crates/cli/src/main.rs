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
mod source;
mod target;
mod typed;
mod webhooks;

use std::process::ExitCode;

use clap::Parser;
use undaunted_runner::request::JobRequest;

use crate::args::{Args, Command};
use crate::exit::Exit;

fn main() -> ExitCode {
    if let Some(spool) = commands::keeper::spool() {
        return exit::code(commands::keeper::run(&spool));
    }
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(wrong) => return exit::of_usage(&wrong),
    };
    let store = args.store.as_deref();
    let done = match args.command {
        Command::Run(run) => commands::run::run(store, &run),
        Command::Exec(exec) => return exit::of_exec(commands::exec::run(store, &exec)),
        Command::Map(map) => commands::map::run(store, &map),
        Command::Serve(serve) => commands::serve::run(store, &serve),
        Command::Resume(resume) => commands::resume::run(store, &resume),
        Command::Ls(ls) => commands::ls::run(store, &ls),
        Command::Show(show) => commands::show::run(store, &show),
        Command::Events(events) => commands::events::run(store, &events),
        Command::Explain(explain) => commands::explain::run(store, &explain),
        Command::Logs(logs) => commands::logs::run(store, &logs),
        Command::State(state) => commands::state::run(store, &state),
        Command::Attempts(attempts) => commands::attempts::run(store, &attempts),
        Command::Cancel(cancel) => commands::cancel::run(store, &cancel),
        Command::Pause(pause) => commands::pause::run(store, &pause, JobRequest::Pause),
        Command::Unpause(pause) => commands::pause::run(store, &pause, JobRequest::Unpause),
        Command::Dlq(dlq) => commands::dlq::run(store, &dlq),
        Command::Budget(budget) => commands::budget::run(store, &budget),
        Command::Breaker(breaker) => commands::breaker::run(store, &breaker),
        Command::Rm(rm) => commands::rm::rm(store, &rm),
        Command::Prune(prune) => commands::rm::prune(store, &prune),
        Command::Archive(archive) => commands::archive::run(store, &archive),
        Command::Restore(restore) => commands::archive::bring_back(store, &restore),
        Command::Store(what) => commands::store::run(store, &what),
        Command::Doctor(doctor) => commands::doctor::run(store, &doctor),
        Command::Completions(completions) => commands::completions::run(&completions).map(|()| Exit::Done),
        Command::Man => commands::man::run().map(|()| Exit::Done),
        Command::Check(check) => commands::check::run(&check).map(|()| Exit::Done),
        Command::Schedule(schedule) => commands::schedule::run(&schedule).map(|()| Exit::Done),
        Command::ExplainConfig(explain) => commands::explain_config::run(&explain).map(|()| Exit::Done),
        Command::Schema => commands::schema::run().map(|()| Exit::Done),
    };
    exit::code(done)
}
