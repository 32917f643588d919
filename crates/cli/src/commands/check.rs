//! `undaunted check`: everything that is wrong with a file, in one go.

use std::io::{self, BufWriter, Write};

use anyhow::Result;
use clap::Args;
use undaunted_engine::workflow::{CheckedWorkflow, Diagnostic, Severity, Source};

use crate::exit::CommandError;
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

Nothing is run, and no input file is opened. Warnings alone are no failure. Every problem has
a code; docs/errors/CODE.md says more about it.")]
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
    let mut unread = Vec::new();
    for file in &args.files {
        match check_file(file) {
            Ok(found) => checked.push(found),
            Err(CommandError::Usage(why)) => return Err(CommandError::Usage(why).into()),
            Err(why) => unread.push(why),
        }
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
    verdict(&checked, unread)
}

/// The exit code is that of the worst file.
fn verdict(checked: &[(Source, CheckedWorkflow)], mut unread: Vec<CommandError>) -> Result<()> {
    let invalid: Vec<_> = checked.iter().filter(|(_, checked)| checked.has_errors()).collect();
    let refused = match (invalid.as_slice(), unread.len()) {
        ([], 0) => return Ok(()),
        ([], 1) => unread.remove(0),
        ([], _) => {
            let all: Vec<_> = unread.iter().map(ToString::to_string).collect();
            CommandError::not_found("no_file", all.join("; "))
        }
        ([(source, checked)], 0) => refusal(source, &checked.diagnostics),
        (several, _) => {
            let files = count(several.len(), "file is", "files are");
            let missing = unread.iter().map(|why| format!("; {why}"));
            CommandError::Invalid(format!("{files} not valid{}", missing.collect::<Vec<_>>().concat()))
        }
    };
    Err(refused.into())
}

fn summary(checked: &CheckedWorkflow) -> String {
    let workflow = checked.workflow.as_ref();
    let steps = workflow.map_or(0, |workflow| workflow.steps.len());
    let warnings = match checked.diagnostics.len() {
        0 => String::new(),
        some => format!(", {}", count(some, "warning", "warnings")),
    };
    format!("valid, {}{warnings}", count(steps, "step", "steps"))
}

pub(crate) fn refusal(source: &Source, diagnostics: &[Diagnostic]) -> CommandError {
    let errors = diagnostics.iter();
    let mut errors = errors.filter(|found| found.code.severity() == Severity::Error);
    let number = errors.clone().count();
    let first = errors.next().map(|found| {
        let at = source.position(found.span);
        let help = found.help.as_ref().map(|help| format!(" ({help})"));
        let help = help.unwrap_or_default();
        format!("line {}: {}{help}", at.line, found.message)
    });
    CommandError::Diagnosed {
        file: source.name().to_owned(),
        errors: count(number, "error", "errors"),
        first: first.unwrap_or_default(),
    }
}
