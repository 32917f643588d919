//! `undaunted resume`: runs a suspended or interrupted job to its end.

use std::io::{self, Write};

use clap::Args;
use undaunted_engine::event::WorkflowText;
use undaunted_engine::input::Input;
use undaunted_engine::job::Job;
use undaunted_engine::plan::Plan;
use undaunted_engine::update::{WorkflowUpdate, compare};
use undaunted_engine::view::JobStatus;
use undaunted_engine::workflow::Source;
use undaunted_runner::journal;

use crate::commands::check::{check_file_by, refusal};
use crate::commands::run::{drive, ignore_broken_pipe, print_report, read_secrets};
use crate::screen::{diagnostics, plain};
use crate::{CommandError, Exit, Jobs, Quietness, Result};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted resume @last
  undaunted resume 3f9a --update
  undaunted resume 3f9a --update nightly.yaml

A job resumes as it was submitted, even if its file has changed. With `--update`, the current
settings of the file (retries, timeouts, limits) apply to everything not decided yet; commands and
input must be the same.")]
pub(crate) struct ResumeArgs {
    /// Id of the job, a unique prefix, or @last
    job: String,

    /// Apply the current settings of the workflow file, or of FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "")]
    update: Option<String>,

    #[command(flatten)]
    quietness: Quietness,
}

pub(crate) fn run(jobs: &Jobs, args: &ResumeArgs) -> Result<Exit> {
    let id = jobs.find(&args.job)?;
    let known = jobs.known(&id)?;
    for sentence in &known.ignored {
        // The note says that records may be lost.
        let _ = writeln!(io::stderr(), "note: {}", plain(sentence));
    }
    let job = &known.job;
    if job.stage.has_ended() {
        ignore_broken_pipe(print_report(job, args.quietness.json))?;
        return Ok(Exit::of(JobStatus::from(job.stage)));
    }
    let update = if let Some(file) = &args.update {
        Some(read_update(job, file)?)
    } else {
        note_changed_file(job)?;
        None
    };
    let secrets = read_secrets(job.workflow(), &job.submitted().working_dir)?;
    let mut claimed = journal::claim_known(&*jobs.store, known)?;
    claimed.first = update;
    drive(jobs, claimed, secrets, args.quietness)
}

fn read_update(job: &Job, file: &str) -> Result<Input> {
    let file = match file {
        "" => &job.submitted().file,
        file => file,
    };
    let (source, checked) = check_file_by(file, |source| job.check(source.text()))?;
    diagnostics::show(&source, &checked.diagnostics);
    let Some(workflow) = checked.workflow else {
        return Err(refusal(&source, &checked.diagnostics));
    };
    match compare(job.workflow(), &workflow) {
        WorkflowUpdate::Settings(changes) => {
            Ok(Input::Update { text: WorkflowText::checked(source.text(), Plan::new(workflow)), changes })
        }
        WorkflowUpdate::Work(differences) => Err(CommandError::Invalid(format!(
            "{} changes the commands or the input of job {}, which an update must keep:\n  {}",
            source.name(),
            job.id(),
            differences.join("\n  ")
        ))),
    }
}

/// Tells a user who has changed the file that the change does not take effect.
fn note_changed_file(job: &Job) -> io::Result<()> {
    let submitted = job.submitted();
    let now = std::fs::read_to_string(&submitted.file).ok();
    let now = now.map(|text| Source::new(submitted.file.as_str(), text));
    if now.is_some_and(|now| *now.text() != *submitted.text) {
        writeln!(
            io::stderr(),
            "note: {} has changed since job {} was submitted; the job resumes as \
             submitted (use `--update` to apply the new settings)",
            submitted.file,
            submitted.job
        )?;
    }
    Ok(())
}
