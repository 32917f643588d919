//! The command line: what can be typed, and its help.

use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands::archive::{ArchiveArgs, RestoreArgs};
use crate::commands::attempts::AttemptsArgs;
use crate::commands::breaker::BreakerArgs;
use crate::commands::budget::BudgetArgs;
use crate::commands::cancel::CancelArgs;
use crate::commands::check::CheckArgs;
use crate::commands::dlq::DlqArgs;
use crate::commands::doctor::DoctorArgs;
use crate::commands::events::EventsArgs;
use crate::commands::exec::ExecArgs;
use crate::commands::explain::ExplainArgs;
use crate::commands::explain_config::ExplainConfigArgs;
use crate::commands::generated::CompletionsArgs;
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

/// Run durable jobs: retry what fails, survive crashes, and explain every decision
#[derive(Debug, Parser)]
#[command(
    name = "undaunted",
    version,
    max_term_width = 100,
    after_help = "\
A job is named by its id, by a unique prefix of it, or as @last. `undaunted COMMAND --help` has
examples.

Exit codes:
    0  completed
    1  failed or cancelled
    2  wrong usage
    3  invalid workflow
    4  completed with dead letters, or below the minimum of its completion rule
    6  not found
    7  store unavailable, or job owned by another process
   75  suspended
  130  interrupted twice"
)]
pub(crate) struct Cli {
    /// Store [default: $UNDAUNTED_STORE, $UNDAUNTED_HOME or the XDG state folder]
    #[arg(long, global = true, value_name = "PATH", display_order = 900)]
    pub(crate) store: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Run a workflow
    Run(RunArgs),
    /// Run one command with retries
    Exec(ExecArgs),
    /// Run a command for each line of input, with retries
    Map(MapArgs),
    /// Serve the flow API over HTTP
    Serve(ServeArgs),
    /// Resume a suspended or interrupted job
    Resume(ResumeArgs),
    /// List jobs
    Ls(LsArgs),
    /// Show the status of a job
    Show(ShowArgs),
    /// Print the events of a job
    Events(EventsArgs),
    /// Explain the status of a job, an item or a command
    Explain(ExplainArgs),
    /// Print the output of a job or an item
    Logs(LogsArgs),
    /// List the attempts of a job or an item
    Attempts(AttemptsArgs),
    /// Export or import the retry state of a job
    State(StateArgs),
    /// Cancel a job
    Cancel(CancelArgs),
    /// Pause a job
    Pause(PauseArgs),
    /// Unpause a job
    Unpause(PauseArgs),
    /// List, redrive or drop dead letters
    Dlq(DlqArgs),
    /// Show or top up the retry pool of a job
    Budget(BudgetArgs),
    /// List, trip or reset breakers
    Breaker(BreakerArgs),
    /// Remove jobs
    Rm(RmArgs),
    /// Remove jobs that ended long ago
    Prune(PruneArgs),
    /// Move ended jobs to archive files
    Archive(ArchiveArgs),
    /// Restore jobs from archive files
    Restore(RestoreArgs),
    /// Check, compact or locate the store
    Store(StoreArgs),
    /// Check that this machine can run jobs
    Doctor(DoctorArgs),
    /// Check workflow files
    Check(CheckArgs),
    /// Preview the retries of a policy without running anything
    Schedule(ScheduleArgs),
    /// Show the retry policy of every command and the origin of each setting
    ExplainConfig(ExplainConfigArgs),
    /// Print the JSON Schema of workflow files, for editors
    #[command(after_help = "\
Example:
  undaunted schema > workflow.schema.json

In an editor with a YAML language server, put this line at the top of a workflow:
  # yaml-language-server: $schema=workflow.schema.json")]
    Schema,
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page
    #[command(after_help = "\
Example:
  undaunted man > undaunted.1")]
    Man,
}

/// The headings of `undaunted --help`, each with its commands. clap has no headings for commands, so the
/// help is a template made from this table.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Run", &["run", "exec", "map", "serve", "resume"]),
    ("Inspect", &["ls", "show", "explain", "attempts", "logs", "events"]),
    ("Act", &["cancel", "pause", "unpause", "dlq", "budget", "breaker"]),
    ("Store", &["store", "archive", "restore", "rm", "prune", "state", "doctor"]),
    ("Author", &["check", "schedule", "explain-config", "schema"]),
    ("Shell", &["completions", "man", "help"]),
];

impl Cli {
    pub(crate) fn read() -> Result<Self, clap::Error> {
        Self::from_arg_matches(&Self::grouped().try_get_matches()?)
    }

    /// The command with its help grouped under headings.
    pub(crate) fn grouped() -> clap::Command {
        let command = Self::command();
        let header = *command.get_styles().get_header();
        let literal = *command.get_styles().get_literal();
        let mut groups = String::new();
        for (heading, names) in GROUPS {
            groups.push_str(&format!("{header}{heading}:{header:#}\n"));
            for name in names {
                let about = command.find_subcommand(name).and_then(clap::Command::get_about);
                // clap adds `help` only when it parses.
                let about =
                    about.map_or_else(|| "Print the help of a command".to_owned(), ToString::to_string);
                groups.push_str(&format!("  {literal}{name:<14}{literal:#}  {about}\n"));
            }
            groups.push('\n');
        }
        let options = format!("{header}Options:{header:#}");
        command.help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{options}\n{{options}}{{after-help}}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_visible_command_is_in_one_group_of_the_help() {
        let mut command = Cli::command();
        command.build();
        let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
        let mut visible: Vec<&str> = visible.map(clap::Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        visible.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, visible);
    }

    #[test]
    fn every_command_and_option_has_a_help_of_one_sentence() {
        let mut command = Cli::command();
        command.build();
        let mut commands = vec![&command];
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands().filter(|command| command.get_name() != "help"));
            let name = command.get_name();
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(!about.is_empty() && !about.ends_with('.'), "{name}: `{about}`");
            for argument in command.get_arguments() {
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                assert!(!help.is_empty() && !help.ends_with('.'), "{name} {}: `{help}`", argument.get_id());
            }
        }
    }
}
