//! Diagnostics of a file: each with its line, a mark under it, and help.

use std::io::{self, Write};
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use serde::Serialize;
use undaunted_engine::workflow::{CheckedWorkflow, Diagnostic, Severity, Source, Span};

use super::{masked, plain, plain_lines, wants_colour};
use crate::exit::wants_json;

/// The most diagnostics that are printed.
const SHOWN: usize = 50;

pub(crate) fn show(source: &Source, problems: &[Diagnostic]) {
    let is_error = |found: &Diagnostic| found.code.severity() == Severity::Error;
    if wants_json() && problems.iter().any(is_error) {
        // The error that follows has the first one; `check --json` has all.
        return;
    }
    let mut err = io::stderr().lock();
    let renderer = if wants_colour(&err) { Renderer::styled() } else { Renderer::plain() };
    for problem in problems.iter().take(SHOWN) {
        // A closed standard error is ignored.
        let _ = writeln!(err, "{}\n", drawn(&renderer, source, problem));
    }
    if let Some(more) = problems.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        let _ = writeln!(err, "… and {more} more; `check --json` lists them\n");
    }
}

fn drawn(renderer: &Renderer, source: &Source, problem: &Diagnostic) -> String {
    let level = match problem.code.severity() {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let related = problem.related.as_ref();
    let other = related.map_or(problem.span, |(span, _)| *span);
    // Only these lines are passed to the renderer: the file may be large.
    let (number, lines) = source.lines(problem.span.min(other), problem.span.max(other));
    let text = source.text().get(lines.clone()).unwrap_or_default();
    let within = |range: Range<usize>| {
        let clamp = |offset: usize| offset.saturating_sub(lines.start).min(text.len());
        clamp(range.start)..clamp(range.end)
    };
    let (text, name) = (masked(text), plain(source.name()));
    let mut snippet = Snippet::source(text).path(name).line_start(number);
    let primary = first_line(source, problem.span);
    snippet = snippet.annotation(AnnotationKind::Primary.span(within(primary)));
    if let Some((span, why)) = related {
        snippet = snippet.annotation(AnnotationKind::Context.span(within(span.range())).label(plain(why)));
    }
    let mut group =
        level.primary_title(plain_lines(&problem.message)).id(problem.code.word()).element(snippet);
    if let Some(help) = &problem.help {
        group = group.element(Level::HELP.message(plain_lines(help)));
    }
    renderer.render(&[group])
}

/// The first line of a span: a mark under a whole block would hide the text.
fn first_line(source: &Source, span: Span) -> Range<usize> {
    let range = span.range();
    let marked = source.text().get(range.clone()).unwrap_or_default();
    let line = marked.find('\n').unwrap_or(marked.len());
    range.start..range.start.saturating_add(line)
}

pub(crate) fn json(out: &mut impl Write, files: &[(Source, CheckedWorkflow)]) -> io::Result<()> {
    let files = files.iter().map(|(source, checked)| FileJson {
        file: source.name(),
        valid: !checked.has_errors(),
        diagnostics: checked.diagnostics.iter().map(|found| one(source, found)).collect(),
        omitted: checked.omitted,
    });
    let report = ReportJson { files: files.collect() };
    serde_json::to_writer(&mut *out, &report)?;
    writeln!(out)
}

#[derive(Serialize)]
struct ReportJson<'a> {
    files: Vec<FileJson<'a>>,
}

#[derive(Serialize)]
struct FileJson<'a> {
    file: &'a str,
    valid: bool,
    diagnostics: Vec<DiagnosticJson<'a>>,
    omitted: usize,
}

#[derive(Serialize)]
struct DiagnosticJson<'a> {
    code: &'static str,
    severity: &'static str,
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
    message: &'a str,
    help: Option<&'a str>,
}

fn one<'a>(source: &Source, found: &'a Diagnostic) -> DiagnosticJson<'a> {
    let start = source.position(found.span);
    let end = source.end(found.span);
    DiagnosticJson {
        code: found.code.word(),
        severity: match found.code.severity() {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        line: start.line,
        column: start.column,
        end_line: end.line,
        end_column: end.column,
        message: &found.message,
        help: found.help.as_deref(),
    }
}
