//! The command line: what can be typed, and the help that says so.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::commands::cancel::CancelArgs;
use crate::commands::check::CheckArgs;
use crate::commands::events::EventsArgs;
use crate::commands::explain_config::ExplainConfigArgs;
use crate::commands::keeper::KeeperArgs;
use crate::commands::ls::LsArgs;
use crate::commands::resume::ResumeArgs;
use crate::commands::run::RunArgs;
use crate::commands::schedule::ScheduleArgs;
use crate::commands::show::ShowArgs;

/// Runs jobs whose parts fail: decides when to try again, when to stop, and says why.
#[derive(Debug, Parser)]
#[command(
    name = "undaunted",
    version,
    about,
    max_term_width = 100,
    after_help = "\
A job is named by its id, by the beginning of it if no other job begins so, or by @last.

Exit codes: 0 completed, 1 failed, 2 wrong usage, 3 invalid workflow, 4 completed with dead letters,
6 not found, 7 store unavailable or job owned by another, 75 suspended, 130 interrupted twice"
)]
pub(crate) struct Args {
    /// The folder jobs are kept in [default: `$UNDAUNTED_HOME`, or undaunted in the XDG state folder]
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a workflow
    Run(RunArgs),
    /// Go on with a job that was suspended, or whose process has died
    Resume(ResumeArgs),
    /// List the jobs
    Ls(LsArgs),
    /// Show how a job stands
    Show(ShowArgs),
    /// Print everything that has happened to a job
    Events(EventsArgs),
    /// End a job: what runs is stopped, what waits is skipped
    Cancel(CancelArgs),
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
    /// Start the commands of a job and stay when its engine dies; started by the engine itself
    #[command(hide = true)]
    Keeper(KeeperArgs),
}
