//! Settings that several mappings have: tolerance, completion, texts, statuses.

use std::ops::RangeInclusive;
use std::time::Duration;

use undaunted_policy::{CompletionRule, Tolerance};

use crate::workflow::diagnostic::DiagnosticCode;
use crate::workflow::model::{OnComplete, OnItemFailure};
use crate::workflow::source::Span;
use crate::workflow::template::TextTemplate;
use crate::workflow::yaml::{YamlEntry, YamlNode};

use super::layer::split_help;
use super::reader::{MappingFields, WorkflowReader};

/// The settings of one block for items that fail.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FailureRule {
    continue_on_failure: Option<bool>,
    max_failures: Option<u64>,
    failure_threshold: Option<f64>,
    on_item_failure: Option<OnItemFailure>,
    /// The span of `on_item_failure: retry`, which enables retries even if no block sets any.
    pub(super) retries: Option<Span>,
}

impl FailureRule {
    /// `outer` fills the gaps.
    pub(super) fn over(self, outer: &Self) -> Self {
        // `continue_on_failure: true` overrides an outer block that stops at the first failure.
        let stop = outer.on_item_failure == Some(OnItemFailure::Stop);
        let taken_back = stop && self.continue_on_failure == Some(true);
        let outer_item = outer.on_item_failure.filter(|_| !taken_back);
        // So does a number of failures.
        let outer_flag = outer.continue_on_failure;
        let outer_flag = outer_flag.filter(|continues| *continues || self.max_failures.is_none());
        let own = self.on_item_failure.is_some();
        Self {
            continue_on_failure: self.continue_on_failure.or(outer_flag),
            max_failures: self.max_failures.or(outer.max_failures),
            failure_threshold: self.failure_threshold.or(outer.failure_threshold),
            on_item_failure: self.on_item_failure.or(outer_item),
            retries: if own { self.retries } else { outer.retries },
        }
    }

    pub(super) fn on_item_failure(&self) -> OnItemFailure {
        self.on_item_failure.unwrap_or_default()
    }

    pub(super) fn tolerance(&self) -> Tolerance {
        let first =
            self.continue_on_failure == Some(false) || self.on_item_failure == Some(OnItemFailure::Stop);
        Tolerance {
            max_failures: if first { Some(1) } else { self.max_failures },
            failure_threshold: self.failure_threshold,
        }
    }
}

impl WorkflowReader<'_> {
    pub(super) fn failure_rule(&mut self, fields: &MappingFields<'_>) -> FailureRule {
        let mut rule = FailureRule {
            continue_on_failure: fields.read("continue_on_failure", |node| self.flag(node)),
            max_failures: fields.read("max_failures", |node| self.at_least_one(node)),
            ..FailureRule::default()
        };
        if let Some(node) = fields.get("failure_threshold")
            && let Some(share) = self.number(node)
        {
            if !(0.0..=1.0).contains(&share) {
                self.wrong(node.span, format!("{share} is out of range"), "write a number from 0 to 1");
            }
            rule.failure_threshold = Some(share);
        }
        if let Some(node) = fields.get("on_item_failure") {
            let words = [
                ("dlq", (OnItemFailure::DeadLetter, false)),
                ("retry", (OnItemFailure::DeadLetter, true)),
                ("skip", (OnItemFailure::Skip, false)),
                ("stop", (OnItemFailure::Stop, false)),
            ];
            if let Some((on_item_failure, retries)) = self.word(node, &words) {
                rule.on_item_failure = Some(on_item_failure);
                rule.retries = retries.then(|| fields.key_span("on_item_failure"));
            }
        }
        self.check_failure_rule(fields, &rule);
        rule
    }

    /// Three keys can set "stop at the first failure"; they must agree.
    fn check_failure_rule(&mut self, fields: &MappingFields<'_>, rule: &FailureRule) {
        let stop = rule.on_item_failure == Some(OnItemFailure::Stop);
        let first = stop || rule.continue_on_failure == Some(false);
        if let Some(most) = rule.max_failures.filter(|most| first && *most != 1) {
            let message = format!("`max_failures` is {most}, but another key stops at the first failure");
            self.problem(DiagnosticCode::Conflict, fields.key_span("max_failures"), message);
        }
        if stop && rule.continue_on_failure == Some(true) {
            let message = "`on_item_failure: stop` and `continue_on_failure: true` contradict each other";
            let span = fields.key_span("continue_on_failure");
            self.problem(DiagnosticCode::Conflict, span, message);
        }
    }

    pub(super) fn completion(&mut self, fields: &MappingFields<'_>) -> (CompletionRule, OnComplete) {
        let mut rule = self.operator.completion;
        if let Some(node) = fields.get("best_effort") {
            rule.best_effort = self.flag(node).unwrap_or_default();
        }
        if let Some(node) = fields.get("best_effort_min_dcs") {
            rule.min = self.count(node).unwrap_or(1);
        }
        if let Some(node) = fields.get("best_effort_deadline_seconds")
            && let Some(deadline) = self.seconds(node)
            && deadline > Duration::ZERO
        {
            rule.deadline = deadline;
        }
        for key in ["best_effort_min_dcs", "best_effort_deadline_seconds", "on_complete"] {
            if fields.get(key).is_some() && !rule.best_effort {
                let message = format!("`{key}` has no effect without `best_effort: true`");
                self.problem(DiagnosticCode::NoEffect, fields.key_span(key), message);
            }
        }
        let on_complete =
            fields.read("on_complete", |node| self.variant(node, OnComplete::ALL, OnComplete::word));
        (rule, on_complete.unwrap_or_default())
    }

    /// Environment variables or headers.
    pub(super) fn texts(&mut self, node: &YamlNode<'_>, what: &str) -> Vec<(String, TextTemplate)> {
        let mut texts = Vec::new();
        for entry in self.map(node).unwrap_or_default() {
            self.check_name(entry, what);
            if let Some(text) = self.scalar_template(&entry.node) {
                texts.push((entry.key.to_string(), text));
            }
        }
        texts
    }

    /// Only the name of a header may have a `-`.
    pub(super) fn check_name(&mut self, entry: &YamlEntry<'_>, what: &str) {
        let dash = what == "a header";
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || (dash && c == '-');
        let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
        if !entry.key.starts_with(begins) || !entry.key.chars().all(plain) {
            let message = format!("`{}` cannot be the name of {what}", entry.key);
            self.problem(DiagnosticCode::WrongValue, entry.key_span, message);
        }
    }

    pub(super) fn statuses(&mut self, node: &YamlNode<'_>) -> Vec<RangeInclusive<u16>> {
        match undaunted_policy::spelling::read_statuses(node) {
            Ok(ranges) if ranges.is_empty() => {
                self.problem(DiagnosticCode::WrongValue, node.span, "the list of statuses is empty");
                ranges
            }
            Ok(ranges) => ranges,
            Err(error) => {
                let span = error.span.unwrap_or(node.span);
                self.problems.push(split_help(DiagnosticCode::WrongValue, span, &error.message));
                Vec::new()
            }
        }
    }

    pub(super) fn identifier(&mut self, node: &YamlNode<'_>) -> Option<String> {
        let text = self.text(node)?;
        self.is_name(text, node.span).then(|| text.to_owned())
    }

    /// Whether the text can be a name; if not, that is reported.
    pub(super) fn is_name(&mut self, text: &str, span: Span) -> bool {
        let plain = |c: char| !c.is_control() && !c.is_whitespace() && c != '/';
        let is_name = !text.is_empty() && text.chars().all(plain);
        if !is_name {
            let message = if text.is_empty() {
                "a name cannot be empty".to_owned()
            } else {
                format!("`{text}` cannot be a name")
            };
            self.wrong(span, message, "a name cannot contain spaces, `/` or control characters");
        }
        is_name
    }
}
