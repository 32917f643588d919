//! `undaunted check`: everything that is wrong with a file, in one go.

use std::io::{self, BufWriter, Write};

use anyhow::Result;
use clap::Args;
use undaunted_engine::workflow::{Checked, Severity, Source};

use crate::exit::Refused;
use crate::screen::{count, diagnostics};
use crate::source::check_file;

/// The files to check.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted check nightly.yaml
  undaunted check examples/*.yaml
  undaunted check - < nightly.yaml
  undaunted check --json nightly.yaml

Nothing is run, and no input file is opened. Warnings alone are no failure.
Every problem has a code; docs/errors/CODE.md says more about it.")]
pub(crate) struct CheckArgs {
    /// Workflow files; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &CheckArgs) -> Result<()> {
    let mut checked = Vec::new();
    for file in &args.files {
        checked.push(check_file(file)?);
    }
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        diagnostics::json(&mut out, &checked)?;
    } else {
        for (source, checked) in &checked {
            diagnostics::show(source, &checked.diagnostics);
            if !checked.has_errors() {
                writeln!(out, "{}: {}", source.name(), summary(checked))?;
            }
        }
    }
    out.flush()?;
    drop(out);
    let invalid: Vec<_> = checked
        .iter()
        .filter(|(_, checked)| checked.has_errors())
        .collect();
    match invalid.as_slice() {
        [] => Ok(()),
        [(source, checked)] => Err(refusal(source, checked).into()),
        several => {
            let files = count(several.len(), "file is", "files are");
            Err(Refused::Invalid(format!("{files} not valid")).into())
        }
    }
}

fn summary(checked: &Checked) -> String {
    let workflow = checked.workflow.as_ref();
    let steps = workflow.map_or(0, |workflow| workflow.steps.len());
    let warnings = match checked.diagnostics.len() {
        0 => String::new(),
        some => format!(", {}", count(some, "warning", "warnings")),
    };
    format!("valid, {}{warnings}", count(steps, "step", "steps"))
}

/// That a file is not valid, with the number of reasons.
pub(crate) fn refusal(source: &Source, checked: &Checked) -> Refused {
    let severities = checked
        .diagnostics
        .iter()
        .map(|found| found.code.severity());
    let errors = severities
        .filter(|severity| *severity == Severity::Error)
        .count();
    let errors = count(errors, "error", "errors");
    Refused::Invalid(format!("{} is not valid: {errors}", source.name()))
}
