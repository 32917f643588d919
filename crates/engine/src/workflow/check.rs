//! Checks texts: workflows, steps, and blocks of retry settings.

use super::diagnostic::{Code, Diagnostic, Severity};
use super::model::{Aim, FlowStep, Place, Resolved, Workflow};
use super::operator::Operator;
use super::read::{Reader, workflow};
use super::source::{Source, Span};
use super::{lint, yaml};

#[derive(Debug)]
pub struct Checked {
    /// `None` if there is an error.
    pub workflow: Option<Workflow>,
    /// In the order of the file.
    pub diagnostics: Vec<Diagnostic>,
    /// Diagnostics beyond the limit.
    pub omitted: usize,
}

impl Checked {
    pub fn has_errors(&self) -> bool {
        let mut severities = self.diagnostics.iter().map(|found| found.code.severity());
        severities.any(|severity| severity == Severity::Error)
    }
}

pub fn check(source: &Source, operator: &Operator) -> Checked {
    check_aimed(source, operator, None)
}

/// `aim` replaces the goals and the beginning that the text of a flow gives, if any.
pub fn check_aimed(source: &Source, operator: &Operator, aim: Option<&Aim>) -> Checked {
    let mut reader = Reader::new(source, operator);
    reader.aimed_at = aim;
    let root = yaml::parse(source, &mut reader.problems);
    let read = root.as_ref().and_then(|root| workflow(&mut reader, root));
    let mut problems = reader.problems;
    if let Some(workflow) = &read {
        lint::warnings(workflow, operator, &mut problems);
    }
    let mut diagnostics = problems.found;
    diagnostics.sort_by(|a, b| (a.span, a.code, &a.message).cmp(&(b.span, b.code, &b.message)));
    let mut checked = Checked { workflow: read, diagnostics, omitted: problems.omitted };
    if checked.has_errors() {
        checked.workflow = None;
    }
    checked
}

pub fn check_bytes(name: &str, bytes: Vec<u8>, operator: &Operator) -> (Source, Checked) {
    check_bytes_by(name, bytes, |source| check(source, operator))
}

pub fn check_bytes_by(
    name: &str,
    bytes: Vec<u8>,
    check: impl FnOnce(&Source) -> Checked,
) -> (Source, Checked) {
    match String::from_utf8(bytes) {
        Ok(text) => {
            let source = Source::new(name, text);
            let checked = check(&source);
            (source, checked)
        }
        Err(error) => {
            let end = error.utf8_error().valid_up_to();
            let mut text = String::from_utf8_lossy(&error.into_bytes()).into_owned();
            text.truncate(end);
            let source = Source::new(name, text);
            let end = source.text().len();
            let problem = Diagnostic::new(Code::Syntax, Span::new(end..end), "the file is not text")
                .help("a workflow is written in UTF-8");
            let checked = Checked { workflow: None, diagnostics: vec![problem], omitted: 0 };
            (source, checked)
        }
    }
}

/// Checks the definition of a step that stands alone.
pub fn check_step(source: &Source, operator: &Operator) -> Result<(String, FlowStep), Vec<Diagnostic>> {
    let mut reader = Reader::new(source, operator);
    let root = yaml::parse(source, &mut reader.problems);
    let read = root.as_ref().and_then(|root| reader.flow_step(root, None));
    let mut found = reader.problems.found;
    found.retain(|found| found.code.severity() == Severity::Error);
    match read {
        Some(step) if found.is_empty() => Ok(step),
        _ => Err(found),
    }
}

/// Checks a `retry_config` that stands alone, with or without its outer key.
pub fn check_retry_config(source: &Source) -> Result<Resolved, Vec<Diagnostic>> {
    let operator = Operator::default();
    let mut reader = Reader::new(source, &operator);
    let root = yaml::parse(source, &mut reader.problems);
    let Some(root) = root else {
        let mut problems = reader.problems.found;
        for problem in problems.iter_mut().filter(|problem| problem.code == Code::Empty) {
            "the block is empty".clone_into(&mut problem.message);
            problem.help = Some("write it like `{attempts: 5, backoff: fibonacci}`".to_owned());
        }
        return Err(problems);
    };
    let block = match &root.value {
        yaml::Value::Map(entries) => match entries.as_slice() {
            [only] if &*only.key == "retry_config" => &only.node,
            _ => &root,
        },
        _ => &root,
    };
    let layer = reader.layer(block, Place::Command);
    let resolved = reader.resolve(layer.iter());
    if reader.problems.found.is_empty() { Ok(resolved) } else { Err(reader.problems.found) }
}
