//! The command line: what can be typed, and the help that says so.

use clap::{Parser, Subcommand};

use crate::commands::check::CheckArgs;
use crate::commands::explain_config::ExplainConfigArgs;
use crate::commands::schedule::ScheduleArgs;

/// Runs jobs whose parts fail: decides when to try again, when to stop, and says why.
#[derive(Debug, Parser)]
#[command(
    name = "undaunted",
    version,
    about,
    max_term_width = 100,
    after_help = "\
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 invalid workflow, 6 not found"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
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
}
