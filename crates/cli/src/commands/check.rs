//! `undaunted check`: reports every problem of a workflow file at once.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Read, Write};

use clap::Args;
use undaunted_engine::workflow::{CheckedWorkflow, Diagnostic, Severity, Source, check, check_bytes_by};

use crate::screen::{count, diagnostics};
use crate::{CommandError, Result, environment};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted check nightly.yaml
  undaunted check examples/*.yaml
  undaunted check - < nightly.yaml
  undaunted check --json nightly.yaml

Runs nothing and opens no input files. Warnings alone do not fail the check. Every problem has a
code; docs/errors/CODE.md explains it.")]
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
            Err(CommandError::Usage(why)) => return Err(CommandError::Usage(why)),
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
            CommandError::Invalid(format!("{files} invalid{}", missing.collect::<Vec<_>>().concat()))
        }
    };
    Err(refused)
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
    let mut errors = diagnostics.iter().filter(|found| found.code.severity() == Severity::Error);
    let number = errors.clone().count();
    let first = errors.next().map(|found| {
        let at = source.position(found.span);
        let help = found.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
        format!("line {}: {}{help}", at.line, found.message)
    });
    CommandError::Diagnosed {
        file: source.name().to_owned(),
        errors: count(number, "error", "errors"),
        first: first.unwrap_or_default(),
    }
}

/// Reads and checks one file; `-` is standard input.
pub(crate) fn check_file(path: &str) -> Result<(Source, CheckedWorkflow)> {
    let operator = environment::operator()?;
    check_file_by(path, |source| check(source, &operator))
}

pub(crate) fn check_file_by(
    path: &str,
    check: impl FnOnce(&Source) -> CheckedWorkflow,
) -> Result<(Source, CheckedWorkflow)> {
    let bytes = read(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => CommandError::not_found("no_file", format!("file `{path}` not found")),
        _ => CommandError::Invalid(format!("cannot read `{path}`: {error}")),
    })?;
    let name = if path == "-" { "standard input" } else { path };
    Ok(check_bytes_by(name, bytes, check))
}

fn read(path: &str) -> io::Result<Vec<u8>> {
    // One byte more than allowed, to detect a file that is too large without reading all of it.
    let most = u64::try_from(Source::MOST_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    if path == "-" {
        io::stdin().lock().take(most).read_to_end(&mut bytes)?;
    } else {
        File::open(path)?.take(most).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}
