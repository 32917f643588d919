//! `undaunted schedule`: prints the retries a policy would make, without running anything.

use std::io::{self, BufWriter, Write};

use clap::Args;
use undaunted_engine::workflow::{Source, StepWork, Workflow, check_retry_config};
use undaunted_policy::{Attempts, Policy, Schedule, Seed};

use crate::commands::check::{check_file, refusal};
use crate::flag_values::whole_number;
use crate::screen::{diagnostics, schedule, wants_colour};
use crate::{CommandError, Result};

/// The number of retries shown of an unlimited policy, and the most in a table.
const SHOWN: u32 = 100;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted schedule nightly.yaml
  undaunted schedule nightly.yaml --step fetch --seed 7
  undaunted schedule --retry-config '{attempts: 5, backoff: fibonacci}'
  undaunted schedule --retry-config '{attempts: unlimited, jitter: full}' --retries 20 --json

Assumes that every attempt fails immediately.")]
pub(crate) struct ScheduleArgs {
    /// Workflow file; shows the first command with retries
    #[arg(required_unless_present = "retry_config", conflicts_with = "retry_config")]
    file: Option<String>,

    /// Show the command or step with this name
    #[arg(long, value_name = "NAME", conflicts_with = "retry_config")]
    step: Option<String>,

    /// Use this YAML block instead of a file, with or without its outer `retry_config:`
    #[arg(long, value_name = "YAML")]
    retry_config: Option<String>,

    /// Show at most N retries [default: 100; with --json, all unless unlimited]
    #[arg(long, value_name = "N", value_parser = whole_number::<u32>, allow_negative_numbers = true)]
    retries: Option<u32>,

    /// Draw jitter from this seed
    #[arg(long, value_name = "S", default_value_t = 0, value_parser = whole_number::<u64>)]
    #[arg(allow_negative_numbers = true)]
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
        schedule::table(&mut out, plan, wants_colour(&io::stdout()))?;
    }
    out.flush()?;
    Ok(())
}

pub(crate) struct RetryPlan {
    /// `None` for a policy given with `--retry-config`.
    pub(crate) command: Option<String>,
    pub(crate) policy: Policy,
    pub(crate) schedule: Schedule,
    pub(crate) most: u32,
}

fn plan(args: &ScheduleArgs) -> Result<RetryPlan> {
    let (command, policy, index) = match (&args.file, &args.retry_config) {
        (Some(file), _) => {
            let (source, checked) = check_file(file)?;
            diagnostics::show(&source, &checked.diagnostics);
            let Some(workflow) = &checked.workflow else {
                return Err(refusal(&source, &checked.diagnostics));
            };
            let candidates = candidates(workflow);
            let chosen = choose(&candidates, args.step.as_deref())?;
            (Some(chosen.command.to_owned()), chosen.policy.clone(), chosen.index)
        }
        (None, yaml) => {
            let source = Source::new("--retry-config", yaml.as_deref().unwrap_or_default());
            let resolved = check_retry_config(&source).map_err(|problems| {
                diagnostics::show(&source, &problems);
                CommandError::Invalid("invalid retry_config".to_owned())
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
    // The same draws as `run` with this seed makes for the first item in its first round.
    let schedule = Schedule::new(&policy, Seed(args.seed).draws(0, index, 1));
    Ok(RetryPlan { command, policy, schedule, most })
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

fn choose<'c, 'w>(candidates: &'c [Candidate<'w>], name: Option<&str>) -> Result<&'c Candidate<'w>> {
    let retried = |candidate: &&Candidate<'_>| candidate.policy.terms().limits().attempts() != Attempts::NONE;
    let Some(name) = name else {
        let first = candidates.iter().find(retried).or(candidates.first());
        return first
            .ok_or_else(|| CommandError::not_found("no_step", "the workflow has no commands".to_owned()));
    };
    let by_command = candidates.iter().find(|candidate| candidate.command == name);
    let mut in_step = candidates.iter().filter(|candidate| candidate.step == name);
    let by_step = in_step.clone().find(retried).or_else(|| in_step.next());
    by_command.or(by_step).ok_or_else(|| {
        let known: Vec<_> = candidates.iter().map(|candidate| candidate.command).collect();
        CommandError::not_found(
            "no_step",
            format!("step `{name}` not found; the commands are {}", known.join(", ")),
        )
    })
}
