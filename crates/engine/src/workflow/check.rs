//! Checks texts: workflows, steps, and blocks of retry settings.

#[cfg(feature = "count-checks")]
use std::sync::atomic::{AtomicUsize, Ordering};

use undaunted_policy::spelling::WorkDefaults;
use undaunted_policy::{CompletionRule, PoolCeilings};

use super::diagnostic::{Diagnostic, DiagnosticCode, Severity};
use super::model::{FlowGoals, FlowStep, ResolvedRetry, SettingPlace, Workflow};
use super::read::{WorkflowReader, workflow};
use super::source::{Source, Span};
use super::{lint, yaml};

/// The operator's settings for every workflow on a machine. They come from environment variables, which
/// the caller reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own, named where it is given")]
pub struct Operator {
    pub ceilings: PoolCeilings,
    /// Whether a workflow without pool settings gets a pool.
    pub pool_for_all: bool,
    /// For steps of a flow without retry settings.
    pub work: WorkDefaults,
    /// For steps without a completion rule.
    pub completion: CompletionRule,
    /// Whether a result that arrives after its step was complete still updates the job's result.
    pub late_results_count: bool,
    /// Whether requests without a `breaker` key get the breaker of their origin.
    pub breaker_per_origin: bool,
    /// Whether the embedding program has functions that commands can name.
    pub has_functions: bool,
}

#[derive(Debug)]
pub struct CheckedWorkflow {
    /// `None` if there is an error.
    pub workflow: Option<Workflow>,
    /// In the order of the file.
    pub diagnostics: Vec<Diagnostic>,
    /// Diagnostics beyond the limit.
    pub omitted: usize,
}

impl CheckedWorkflow {
    pub fn has_errors(&self) -> bool {
        let mut severities = self.diagnostics.iter().map(|found| found.code.severity());
        severities.any(|severity| severity == Severity::Error)
    }
}

#[cfg(feature = "count-checks")]
static CHECKS_MADE: AtomicUsize = AtomicUsize::new(0);

/// Workflows, steps and blocks of settings that this process has checked; tests show with it that each
/// text is checked once.
#[cfg(feature = "count-checks")]
pub fn checks_made() -> usize {
    CHECKS_MADE.load(Ordering::Relaxed)
}

#[cfg(feature = "count-checks")]
pub(crate) fn count_check() {
    let _ = CHECKS_MADE.fetch_add(1, Ordering::Relaxed);
}

pub fn check(source: &Source, operator: &Operator) -> CheckedWorkflow {
    check_aimed(source, operator, None)
}

/// `aim` replaces the goals and the initial attributes of a flow.
pub fn check_aimed(source: &Source, operator: &Operator, aim: Option<&FlowGoals>) -> CheckedWorkflow {
    let mut reader = WorkflowReader::new(source, operator);
    reader.aimed_at = aim;
    checked_by(reader, source, operator)
}

/// Like [`check_aimed`], for the text of a job. An earlier release may have accepted it, so rules that were
/// added since do not apply.
pub(crate) fn check_accepted(
    source: &Source,
    operator: &Operator,
    aim: Option<&FlowGoals>,
) -> CheckedWorkflow {
    let mut reader = WorkflowReader::new(source, operator);
    reader.aimed_at = aim;
    reader.is_stored = true;
    checked_by(reader, source, operator)
}

fn checked_by(mut reader: WorkflowReader<'_>, source: &Source, operator: &Operator) -> CheckedWorkflow {
    let root = yaml::parse(source, &mut reader.problems);
    let read = root.as_ref().and_then(|root| workflow(&mut reader, root));
    let mut problems = reader.problems;
    if let Some(workflow) = &read {
        lint::warnings(workflow, operator, &mut problems);
    }
    let mut diagnostics = problems.found;
    diagnostics.sort_by(|a, b| (a.span, a.code, &a.message).cmp(&(b.span, b.code, &b.message)));
    let mut checked = CheckedWorkflow { workflow: read, diagnostics, omitted: problems.omitted };
    if checked.has_errors() {
        checked.workflow = None;
    }
    checked
}

pub fn check_bytes(name: &str, bytes: Vec<u8>, operator: &Operator) -> (Source, CheckedWorkflow) {
    check_bytes_by(name, bytes, |source| check(source, operator))
}

pub fn check_bytes_by(
    name: &str,
    bytes: Vec<u8>,
    check: impl FnOnce(&Source) -> CheckedWorkflow,
) -> (Source, CheckedWorkflow) {
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
            let problem =
                Diagnostic::new(DiagnosticCode::Syntax, Span::new(end..end), "the file is not UTF-8 text")
                    .help("save the workflow as UTF-8");
            let checked = CheckedWorkflow { workflow: None, diagnostics: vec![problem], omitted: 0 };
            (source, checked)
        }
    }
}

/// Checks the definition of a single step.
pub fn check_step(source: &Source, operator: &Operator) -> Result<(String, FlowStep), Vec<Diagnostic>> {
    let mut reader = WorkflowReader::new(source, operator);
    reader.lists_keys = true;
    step_checked_by(reader, source)
}

/// Like [`check_step`], for a step that is registered. An earlier release may have accepted it, so rules that
/// were added since do not apply.
pub fn check_registered_step(
    source: &Source,
    operator: &Operator,
) -> Result<(String, FlowStep), Vec<Diagnostic>> {
    let mut reader = WorkflowReader::new(source, operator);
    reader.is_stored = true;
    step_checked_by(reader, source)
}

fn step_checked_by(
    mut reader: WorkflowReader<'_>,
    source: &Source,
) -> Result<(String, FlowStep), Vec<Diagnostic>> {
    let root = yaml::parse(source, &mut reader.problems);
    let read = root.as_ref().and_then(|root| reader.flow_step(root, None));
    let mut found = reader.problems.found;
    found.retain(|found| found.code.severity() == Severity::Error);
    match read {
        Some(step) if found.is_empty() => Ok(step),
        _ => Err(found),
    }
}

/// Checks a single `retry_config`, with or without its outer key.
pub fn check_retry_config(source: &Source) -> Result<ResolvedRetry, Vec<Diagnostic>> {
    let operator = Operator::default();
    let mut reader = WorkflowReader::new(source, &operator);
    let root = yaml::parse(source, &mut reader.problems);
    let Some(root) = root else {
        let mut problems = reader.problems.found;
        for problem in problems.iter_mut().filter(|problem| problem.code == DiagnosticCode::Empty) {
            "the block is empty".clone_into(&mut problem.message);
            problem.help = Some("write it like `{attempts: 5, backoff: fibonacci}`".to_owned());
        }
        return Err(problems);
    };
    let inner = match &root.value {
        yaml::YamlValue::Map(entries) if entries.len() == 1 => entries.first(),
        _ => None,
    };
    let inner = inner.filter(|entry| &*entry.key == "retry_config");
    let block = inner.map_or(&root, |entry| &entry.node);
    let layer = reader.layer(block, SettingPlace::Command);
    let resolved = reader.resolve(layer.iter());
    if reader.problems.found.is_empty() { Ok(resolved) } else { Err(reader.problems.found) }
}
