//! The command line: what can be typed, and the help that says so.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::commands::archive::{ArchiveArgs, RestoreArgs};
use crate::commands::attempts::AttemptsArgs;
use crate::commands::breaker::BreakerArgs;
use crate::commands::budget::BudgetArgs;
use crate::commands::cancel::CancelArgs;
use crate::commands::check::CheckArgs;
use crate::commands::completions::CompletionsArgs;
use crate::commands::dlq::DlqArgs;
use crate::commands::doctor::DoctorArgs;
use crate::commands::events::EventsArgs;
use crate::commands::exec::ExecArgs;
use crate::commands::explain::ExplainArgs;
use crate::commands::explain_config::ExplainConfigArgs;
use crate::commands::logs::LogsArgs;
use crate::commands::ls::LsArgs;
use crate::commands::map::MapArgs;
use crate::commands::pause::PauseArgs;
use crate::commands::resume::ResumeArgs;
use crate::commands::rm::{PruneArgs, RmArgs};
use crate::commands::run::RunArgs;
use crate::commands::schedule::ScheduleArgs;
use crate::commands::serve::ServeArgs;
use crate::commands::show::ShowArgs;
use crate::commands::state::StateArgs;
use crate::commands::store::StoreArgs;

/// Runs jobs whose parts fail: decides when to try again, when to stop, and says why.
#[derive(Debug, Parser)]
#[command(
    name = "undaunted",
    version,
    about,
    max_term_width = 100,
    after_help = "\
A job is named by its id, by the beginning of it if no other job begins so, or by @last.

Exit codes: 0 completed, 1 failed, 2 wrong usage, 3 invalid workflow, 4 completed with dead
letters, 6 not found, 7 store unavailable or job owned by another, 75 suspended, 130
interrupted twice"
)]
pub(crate) struct Args {
    /// The folder jobs are kept in [default: `$UNDAUNTED_STORE`, `$UNDAUNTED_HOME`, or undaunted in the XDG state folder]
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a workflow
    Run(RunArgs),
    /// Run one command, retried
    Exec(ExecArgs),
    /// Run a command for each line of the input, retried
    Map(MapArgs),
    /// Run flows for whoever asks over HTTP
    Serve(ServeArgs),
    /// Go on with a job that was suspended, or whose process has died
    Resume(ResumeArgs),
    /// List the jobs
    Ls(LsArgs),
    /// Show how a job stands
    Show(ShowArgs),
    /// Print everything that has happened to a job
    Events(EventsArgs),
    /// Say why a job, an item or a command stands as it does, with all the arithmetic
    Explain(ExplainArgs),
    /// Print what the commands of a job or an item wrote
    Logs(LogsArgs),
    /// List every attempt of a job or an item
    Attempts(AttemptsArgs),
    /// Carry the retries of a job to and from the file of another system
    State(StateArgs),
    /// End a job: what runs is stopped, what waits is skipped
    Cancel(CancelArgs),
    /// Start nothing new in a job until it is unpaused
    Pause(PauseArgs),
    /// Let a paused job go on
    Unpause(PauseArgs),
    /// Look at dead letters, try them again or give them up
    Dlq(DlqArgs),
    /// Look at the retries a whole job may make, or allow more
    Budget(BudgetArgs),
    /// Look at the breakers of the store, open or close one by hand
    Breaker(BreakerArgs),
    /// Remove jobs
    Rm(RmArgs),
    /// Remove jobs that ended long ago
    Prune(PruneArgs),
    /// Move jobs that have ended to files
    Archive(ArchiveArgs),
    /// Bring archived jobs back
    Restore(RestoreArgs),
    /// Check, compact or find the store
    Store(StoreArgs),
    /// Say what this machine lacks
    Doctor(DoctorArgs),
    /// Check workflow files, and say everything that is wrong with them
    Check(CheckArgs),
    /// Show the retries a policy would make, without running anything
    Schedule(ScheduleArgs),
    /// Show the retry policy of every command, and where each value comes from
    ExplainConfig(ExplainConfigArgs),
    /// Print the JSON Schema of workflow files, for editors
    #[command(after_help = "\
Example:
  undaunted schema > workflow.schema.json

In an editor with a YAML language server, put this line at the top of a workflow:
  # yaml-language-server: $schema=workflow.schema.json")]
    Schema,
    /// Print what a shell needs to complete what is typed
    Completions(CompletionsArgs),
    /// Print the manual page
    #[command(after_help = "\
Example:
  undaunted man > undaunted.1")]
    Man,
}
