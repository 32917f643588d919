//! `undaunted schedule`: the retries a policy would make, printed instead of made.

use std::io::{self, BufWriter, Write};

use anyhow::Result;
use clap::Args;
use undaunted_engine::workflow::{Source, StepWork, Workflow, check_retry_config};
use undaunted_policy::{Attempts, Policy, Schedule, Seed};

use crate::commands::check;
use crate::exit::CommandError;
use crate::screen::{diagnostics, is_colourful, schedule};
use crate::source::check_file;

/// Retries shown of a policy without a bound, and at most in a table.
const SHOWN: u32 = 100;

/// What to show the schedule of.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted schedule nightly.yaml
  undaunted schedule nightly.yaml --step fetch --seed 7
  undaunted schedule --retry-config '{attempts: 5, backoff: fibonacci}'
  undaunted schedule --retry-config '{attempts: unlimited, jitter: full}' --retries 20 --json

Attempts are taken to last no time, and every one of them to fail.")]
pub(crate) struct ScheduleArgs {
    /// A workflow file; the first command that is retried is shown
    #[arg(required_unless_present = "retry_config", conflicts_with = "retry_config")]
    file: Option<String>,

    /// The command or step to show, by name
    #[arg(long, value_name = "NAME", conflicts_with = "retry_config")]
    step: Option<String>,

    /// A block of settings instead of a file, in YAML, with or without its outer `retry_config:`
    #[arg(long, value_name = "YAML")]
    retry_config: Option<String>,

    /// Show at most this many retries [default: 100; with --json all, if there is a bound]
    #[arg(long, value_name = "N")]
    retries: Option<u32>,

    /// Draw the jitter from this seed
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,

    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ScheduleArgs) -> Result<()> {
    let plan = plan(args)?;
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        schedule::json(&mut out, plan)?;
    } else {
        schedule::table(&mut out, plan, is_colourful(&io::stdout()))?;
    }
    out.flush()?;
    Ok(())
}

pub(crate) struct Plan {
    /// `None` for a policy that was typed.
    pub(crate) command: Option<String>,
    pub(crate) policy: Policy,
    pub(crate) schedule: Schedule,
    pub(crate) most: u32,
}

fn plan(args: &ScheduleArgs) -> Result<Plan> {
    let (command, policy, index) = match (&args.file, &args.retry_config) {
        (Some(file), _) => {
            let (source, checked) = check_file(file)?;
            diagnostics::show(&source, &checked.diagnostics);
            let Some(workflow) = &checked.workflow else {
                return Err(check::refusal(&source, &checked.diagnostics).into());
            };
            let candidates = candidates(workflow);
            let chosen = choose(&candidates, args.step.as_deref())?;
            (Some(chosen.command.to_owned()), chosen.policy.clone(), chosen.index)
        }
        (None, yaml) => {
            let source = Source::new("--retry-config", yaml.as_deref().unwrap_or_default());
            let resolved = check_retry_config(&source).map_err(|problems| {
                diagnostics::show(&source, &problems);
                CommandError::Invalid("the retry_config is not valid".to_owned())
            })?;
            (None, resolved.policy, 0)
        }
    };
    let bound = policy.terms().limits().attempts().retries();
    let most = match (args.retries, bound) {
        (Some(asked), _) => asked,
        (None, Some(_)) if args.json => u32::MAX,
        (None, _) => SHOWN,
    };
    // What `run` with the same seed draws for the first item in its first round.
    let schedule = Schedule::new(&policy, Seed(args.seed).draws(0, index, 1));
    Ok(Plan { command, policy, schedule, most })
}

struct Candidate<'w> {
    step: &'w str,
    command: &'w str,
    policy: &'w Policy,
    index: u64,
}

fn candidates(workflow: &Workflow) -> Vec<Candidate<'_>> {
    let mut found = Vec::new();
    for (place, step) in workflow.steps.iter().enumerate() {
        if let StepWork::Call(call) = &step.work {
            found.push(Candidate {
                step: &step.name,
                command: &step.name,
                policy: &call.retry.policy,
                index: u64::try_from(place).unwrap_or(u64::MAX),
            });
        }
        found.extend(step.commands.iter().map(|command| Candidate {
            step: &step.name,
            command: &command.id,
            policy: &command.retry.policy,
            index: command.index,
        }));
    }
    found
}

fn choose<'c, 'w>(
    candidates: &'c [Candidate<'w>],
    name: Option<&str>,
) -> Result<&'c Candidate<'w>, CommandError> {
    let retried = |candidate: &&Candidate<'_>| candidate.policy.terms().limits().attempts() != Attempts::NONE;
    let Some(name) = name else {
        let first = candidates.iter().find(retried).or(candidates.first());
        return first
            .ok_or_else(|| CommandError::not_found("no_step", "the workflow has no command".to_owned()));
    };
    let by_command = candidates.iter().find(|candidate| candidate.command == name);
    let mut in_step = candidates.iter().filter(|candidate| candidate.step == name);
    let by_step = in_step.clone().find(retried).or_else(|| in_step.next());
    by_command.or(by_step).ok_or_else(|| {
        let known: Vec<_> = candidates.iter().map(|candidate| candidate.command).collect();
        CommandError::not_found(
            "no_step",
            format!("there is no step `{name}`; there are {}", known.join(", ")),
        )
    })
}
