//! The command line: what can be typed, and its help.

use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands::{
    archive, attempts, breaker, budget, cancel, check, dlq, doctor, events, exec, explain, explain_config,
    generated, logs, ls, map, pause, resume, rm, run, schedule, serve, show, state, store,
};

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
    2  usage error
    3  invalid workflow
    4  completed with dead letters, or below the minimum of its completion rule
    6  not found
    7  store unavailable, or job owned by another process
   75  suspended
  130  interrupted twice"
)]
pub(crate) struct Cli {
    /// Use this store [default: `$UNDAUNTED_STORE`, `$UNDAUNTED_HOME` or the XDG state folder]
    #[arg(long, global = true, value_name = "PATH", display_order = 900)]
    pub(crate) store: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Run a workflow
    Run(run::RunArgs),
    /// Run one command with retries
    Exec(exec::ExecArgs),
    /// Run a command for each line of input, with retries
    Map(map::MapArgs),
    /// Serve the flow API over HTTP
    Serve(serve::ServeArgs),
    /// Resume a suspended or interrupted job
    Resume(resume::ResumeArgs),
    /// List jobs
    Ls(ls::LsArgs),
    /// Show the status of a job
    Show(show::ShowArgs),
    /// Print the events of a job
    Events(events::EventsArgs),
    /// Explain the status of a job, an item or a command
    Explain(explain::ExplainArgs),
    /// Print the output of a job or an item
    Logs(logs::LogsArgs),
    /// List the attempts of a job or an item
    Attempts(attempts::AttemptsArgs),
    /// Export or import the retry state of a job
    State(state::StateArgs),
    /// Cancel a job
    Cancel(cancel::CancelArgs),
    /// Pause a job
    Pause(pause::PauseArgs),
    /// Unpause a job
    Unpause(pause::PauseArgs),
    /// List, redrive or drop dead letters
    Dlq(dlq::DlqArgs),
    /// Show or top up the retry pool of a job
    Budget(budget::BudgetArgs),
    /// List, trip or reset breakers
    Breaker(breaker::BreakerArgs),
    /// Remove jobs
    Rm(rm::RmArgs),
    /// Remove jobs that ended long ago
    Prune(rm::PruneArgs),
    /// Move ended jobs to archive files
    Archive(archive::ArchiveArgs),
    /// Restore jobs from archive files
    Restore(archive::RestoreArgs),
    /// Check, compact or locate the store
    Store(store::StoreArgs),
    /// Check that this machine can run jobs
    Doctor(doctor::DoctorArgs),
    /// Check workflow files
    Check(check::CheckArgs),
    /// Preview the retries of a policy without running anything
    Schedule(schedule::ScheduleArgs),
    /// Show the retry policy of every command and the origin of each setting
    ExplainConfig(explain_config::ExplainConfigArgs),
    /// Print the JSON Schema of workflow files, for editors
    #[command(after_help = "\
Example:
  undaunted schema > workflow.schema.json

In an editor with a YAML language server, put this line at the top of a workflow:
  # yaml-language-server: $schema=workflow.schema.json")]
    Schema,
    /// Print a completion script for a shell
    Completions(generated::CompletionsArgs),
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
        let matches = Self::command().try_get_matches();
        // Grouping the help takes as long as parsing, so it is left to when it is shown.
        Self::from_arg_matches(&matches.or_else(|_| Self::grouped().try_get_matches())?)
    }

    /// The command with its help grouped under headings.
    pub(crate) fn grouped() -> clap::Command {
        let command = Self::command();
        let header = *command.get_styles().get_header();
        let literal = *command.get_styles().get_literal();
        let line = |name: &&str| {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            // clap adds `help` only when it parses.
            let about = about.map_or_else(|| "Print the help of a command".to_owned(), ToString::to_string);
            format!("  {literal}{name:<14}{literal:#}  {about}\n")
        };
        let group = |(heading, names): &(&str, &[&str])| {
            let lines: String = names.iter().map(line).collect();
            format!("{header}{heading}:{header:#}\n{lines}\n")
        };
        let groups: String = GROUPS.iter().map(group).collect();
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
