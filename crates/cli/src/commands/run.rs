//! `undaunted run`: submits a workflow as a job and runs it.

use std::env;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use clap::Args;
use undaunted_engine::event::JobSubmitted;
use undaunted_engine::job::Job;
use undaunted_engine::plan::Plan;
use undaunted_engine::submission::{SubmissionContext, SubmissionError, submission};
use undaunted_engine::view::{JobStatus, report};
use undaunted_engine::workflow::{Operator, Source, Workflow};
use undaunted_runner::clock::Clock;
use undaunted_runner::journal::{self, ClaimedJob};
use undaunted_runner::keeper::WaitingKeeper;
use undaunted_runner::secrets::{SecretError, Secrets};

use super::check::{check_file, refusal};
use crate::flag_values::whole_number;
use crate::foreground::OnSignal;
use crate::jobs::{drawn_number, name_and_seed};
use crate::screen::{diagnostics, json, summary};
use crate::{
    CommandError, Display, Exit, Jobs, OutputPrinter, Quietness, Result, StorePlace, environment, foreground,
};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted run nightly.yaml
  undaunted run nightly.yaml --verbose
  undaunted run nightly.yaml --json
  undaunted run nightly.yaml --seed 7

Ctrl-C lets running commands finish and suspends the job (exit 75); a second Ctrl-C stops them now.
`undaunted resume` resumes a suspended or killed job.")]
pub(crate) struct RunArgs {
    /// Workflow file; `-` is standard input
    file: String,

    /// Draw jitter from this seed, to repeat the delays of another run [default: random]
    #[arg(long, value_name = "NUMBER", value_parser = whole_number::<u64>, allow_negative_numbers = true)]
    seed: Option<u64>,

    #[command(flatten)]
    quietness: Quietness,
}

pub(crate) fn run(store: Option<&Path>, args: &RunArgs, waiting: Option<WaitingKeeper>) -> Result<Exit> {
    let (source, plan) = plan_file(&args.file)?;
    let secrets = read_secrets(plan.workflow(), &current_directory()?)?;
    let submitted = submit(&args.file, &source, &plan, args.seed)?;
    let place = StorePlace::named(store)?;
    let prepared = place.prepare(&submitted.job, plan.has_programs(), waiting);
    let jobs = place.open()?;
    prepared.submitted();
    let claimed = journal::submit_ahead(&*jobs.store, submitted, &jobs.plans, Clock::set().now())?;
    drive(&jobs, claimed, secrets, args.quietness)
}

/// Checks a workflow file and shows the diagnostics.
pub(crate) fn plan_file(file: &str) -> Result<(Source, Arc<Plan>)> {
    let (source, checked) = check_file(file)?;
    diagnostics::show(&source, &checked.diagnostics);
    match checked.workflow {
        Some(workflow) => Ok((source, Arc::new(Plan::new(workflow)))),
        None => Err(refusal(&source, &checked.diagnostics)),
    }
}

/// Runs a job until it ends or is suspended, and prints its report.
pub(crate) fn drive(
    jobs: &Jobs,
    claimed: ClaimedJob,
    secrets: Secrets,
    quietness: Quietness,
) -> Result<Exit> {
    let (job, signals) = if let Some(how) = claimed.job.submitted().passing {
        let folder = jobs.local.job(claimed.job.id());
        let display = Display::beside_output(&claimed.job, quietness.is_quiet());
        let mut printer = OutputPrinter::new(&claimed.job, &folder, how, display).with_json(quietness.json);
        printer.catch_up(jobs, claimed.job.id())?;
        let done = foreground::run(jobs, claimed, secrets, &mut printer, OnSignal::Suspend)?;
        printer.finish()?;
        done
    } else {
        let mut display = Display::new(&claimed.job, quietness);
        let done = foreground::run(jobs, claimed, secrets, &mut display, OnSignal::Suspend);
        display.end();
        done?
    };
    if job.submitted().passing.is_some() && !quietness.json {
        // Standard output is for the output of the commands.
        summary::show(&mut io::stderr().lock(), &report(&job))?;
    } else {
        ignore_broken_pipe(print_report(&job, quietness.json))?;
    }
    Ok(match Exit::of(JobStatus::from(job.stage)) {
        _ if signals.count > 1 => Exit::Interrupted,
        exit => exit,
    })
}

/// A broken pipe does not change the result of a job.
pub(crate) fn ignore_broken_pipe(printed: io::Result<()>) -> io::Result<()> {
    match printed {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

pub(crate) fn print_report(job: &Job, as_json: bool) -> io::Result<()> {
    let report = report(job);
    let mut out = io::stdout().lock();
    if as_json {
        json(&mut out, &report)?;
    } else {
        summary::show(&mut out, &report)?;
    }
    out.flush()
}

pub(crate) fn submit(
    file: &str,
    source: &Source,
    plan: &Arc<Plan>,
    seed: Option<u64>,
) -> Result<JobSubmitted> {
    let (job, drawn) = name_and_seed()?;
    let path = match file {
        "-" => "-".to_owned(),
        file => std::path::absolute(file).map_or_else(|_| file.to_owned(), |path| path.display().to_string()),
    };
    let operator = environment::operator()?;
    let variable = |name: &str| {
        // Secrets are never stored.
        let secret = Secrets::is_named(plan.workflow(), name);
        env::var(name).ok().filter(|_| !secret)
    };
    let context = submission_context(job, path, seed.unwrap_or(drawn), &operator, &variable)?;
    submission(Arc::clone(plan), source.text(), context).map_err(|error| refused(source, &error))
}

pub(crate) fn submission_context<'c>(
    job: String,
    file: String,
    seed: u64,
    operator: &'c Operator,
    variable: &'c dyn Fn(&str) -> Option<String>,
) -> Result<SubmissionContext<'c>> {
    Ok(SubmissionContext {
        job,
        file,
        working_dir: current_directory()?,
        seed,
        operator,
        variable,
        release: env!("CARGO_PKG_VERSION").to_owned(),
        flow: None,
        token_key: Some(drawn_number()?),
    })
}

fn refused(source: &Source, error: &SubmissionError) -> CommandError {
    match error {
        SubmissionError::Parallel { .. } => CommandError::Usage(error.to_string()),
        _ => CommandError::Invalid(format!("{}: {error}", source.name())),
    }
}

pub(crate) fn current_directory() -> Result<String> {
    let here = env::current_dir()
        .map_err(|error| CommandError::Usage(format!("cannot find the current directory: {error}")))?;
    here.into_os_string().into_string().map_err(|here| {
        CommandError::Usage(format!("the path of the current directory is not UTF-8: `{}`", here.display()))
    })
}

/// Reads the secrets of a workflow, before anything is stored or run.
pub(crate) fn read_secrets(workflow: &Workflow, directory: &str) -> Result<Secrets> {
    Secrets::read(workflow, Path::new(directory)).map_err(|error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        let message = format!("{error}{}", cause.unwrap_or_default());
        match error {
            SecretError::TooShort { .. } => CommandError::Invalid(message),
            _ => CommandError::Usage(message),
        }
    })
}
