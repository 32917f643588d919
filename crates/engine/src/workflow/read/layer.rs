//! Retry settings from several places, laid over each other.

use std::collections::BTreeMap;
use std::time::Duration;

use undaunted_policy::{Backoff, Parameter, PolicyError, RetryConfig, RuleAction};

use crate::workflow::diagnostic::{Diagnostic, DiagnosticCode};
use crate::workflow::keys::{MappingTable, ValueShape, plain_strategies};
use crate::workflow::model::{ResolvedRetry, SettingOrigin, SettingPlace};
use crate::workflow::source::Span;
use crate::workflow::yaml::{YamlNode, YamlValue};

use super::reader::WorkflowReader;

/// In a file, entries of `retry_on` included.
const MOST_RULES: usize = 2000;

/// The settings of one block, and where each is given.
#[derive(Clone, Debug)]
pub(crate) struct SettingsLayer {
    pub(crate) place: SettingPlace,
    pub(crate) config: RetryConfig,
    pub(crate) spans: BTreeMap<&'static str, Span>,
}

impl SettingsLayer {
    /// Requests retries without setting anything.
    pub(crate) fn empty(place: SettingPlace) -> Self {
        Self { place, config: RetryConfig::new(), spans: BTreeMap::new() }
    }
}

/// A deadline limits retries like a setting of its own.
pub(super) fn deadline_layer(deadline: Option<Duration>, span: Span) -> Option<SettingsLayer> {
    let mut layer = SettingsLayer::empty(SettingPlace::Deadline);
    layer.config = layer.config.deadline(deadline?);
    layer.spans.insert("deadline", span);
    Some(layer)
}

impl WorkflowReader<'_> {
    pub(crate) fn layer(&mut self, node: &YamlNode<'_>, place: SettingPlace) -> Option<SettingsLayer> {
        let fields = self.fields(node, MappingTable::RetryConfig)?;
        let mut layer = SettingsLayer::empty(place);
        for entry in fields.entries {
            if let YamlValue::List(list) = &entry.node.value
                && matches!(&*entry.key, "rules" | "retry_on")
            {
                // Each may hold a regular expression, which is slow to compile.
                self.rules = self.rules.saturating_add(list.len());
                if self.rules > MOST_RULES {
                    let message = format!("a file can have at most {MOST_RULES} rules");
                    self.problem(DiagnosticCode::TooLarge, entry.key_span, message);
                    continue;
                }
            }
            let key = MappingTable::RetryConfig.key(&entry.key);
            if !key.is_some_and(|key| self.conforms(&entry.node, &key.shape)) {
                continue;
            }
            let before = layer.config.given();
            match layer.config.read(&entry.key, &entry.node) {
                Ok(()) => {
                    for setting in layer.config.given() {
                        if !before.contains(&setting) {
                            layer.spans.insert(setting, entry.key_span);
                        }
                    }
                }
                Err(error) => {
                    let span = error.span.unwrap_or(entry.node.span);
                    self.problems.push(split_help(DiagnosticCode::WrongValue, span, &error.message));
                }
            }
        }
        Some(layer)
    }

    /// Resolves the policy of these blocks, the closest first.
    pub(crate) fn resolve<'l>(&mut self, layers: impl Iterator<Item = &'l SettingsLayer>) -> ResolvedRetry {
        let mut config: Option<RetryConfig> = None;
        let mut origins = BTreeMap::new();
        let mut retried = false;
        for layer in layers {
            // A deadline limits retries and requests none.
            retried |= layer.place != SettingPlace::Deadline;
            for (setting, span) in &layer.spans {
                origins.entry(*setting).or_insert(SettingOrigin { place: layer.place, span: *span });
            }
            config = Some(match config {
                None => layer.config.clone(),
                Some(closer) => closer.over(&layer.config),
            });
        }
        let Some(config) = config.filter(|_| retried) else {
            return ResolvedRetry::once();
        };
        match config.build() {
            Ok(policy) => ResolvedRetry::new(policy, origins),
            Err(error) => {
                let origin = origins.get(setting_of(&error));
                let span = origin.map_or(Span::default(), |origin| origin.span);
                let problem = split_help(DiagnosticCode::WrongValue, span, &error.to_string());
                // One block may apply to many commands; it is reported once.
                self.problems.push_once(problem);
                ResolvedRetry::once()
            }
        }
    }

    /// A rule that says `hold` needs a breaker.
    pub(crate) fn check_holds(&mut self, resolved: &ResolvedRetry) {
        let rules = resolved.policy.rules().table();
        let Some(at) = rules.iter().position(|rule| rule.then() == RuleAction::Hold) else {
            return;
        };
        let origin = resolved.origin("rules");
        let span = origin.map_or(Span::default(), |origin| origin.span);
        let number = at.saturating_add(1);
        let message = format!("rule {number} says `hold`, but the command has no breaker");
        let help = "add `breaker: true` to the command; a handler cannot have a breaker";
        self.problem_with_help(DiagnosticCode::NoBreaker, span, message, help);
    }
}

/// Splits a message of the policy crate into the problem and, behind a semicolon, the help.
pub(super) fn split_help(code: DiagnosticCode, span: Span, text: &str) -> Diagnostic {
    let code = if text.contains("has two values") || text.contains("has two strategies") {
        DiagnosticCode::Conflict
    } else if text.starts_with("unknown field") {
        DiagnosticCode::UnknownKey
    } else if text.starts_with("missing field") {
        DiagnosticCode::MissingKey
    } else {
        code
    };
    match text.split_once("; ") {
        Some((message, help)) => Diagnostic::new(code, span, message).help(help),
        None => match text.split_once(", expected ") {
            Some((message, expected)) => {
                Diagnostic::new(code, span, message).help(format!("expected {expected}"))
            }
            None => Diagnostic::new(code, span, text),
        },
    }
}

/// Parameters of a strategy are part of the setting `backoff`.
fn setting_of(error: &PolicyError) -> &'static str {
    let strategies = Backoff::ALL.iter().map(Backoff::strategy);
    let mut parameters = strategies.flat_map(|strategy| strategy.parameters);
    match error.field() {
        field @ Parameter::INITIAL_DELAY => field,
        field if parameters.any(|parameter| parameter.of == field) => "backoff",
        "retry_on" | "retry_statuses" => "rules",
        field => field,
    }
}

// The policy crate reads `retry_config` with serde, whose messages speak of fields and variants. Wrong
// keys and words are found first, with the messages used everywhere else.

/// Help for a word that another shape would take.
fn help_for_word(word: &str, shapes: &[ValueShape]) -> Option<String> {
    let flags = shapes.iter().any(|shape| matches!(shape, ValueShape::Flag));
    if flags && matches!(word, "true" | "yes" | "on" | "false" | "no" | "off") {
        let flag = matches!(word, "true" | "yes" | "on");
        return Some(format!("write `{flag}`, without quotes"));
    }
    shapes.iter().find_map(|shape| match shape {
        ValueShape::Keys(table) => {
            let ValueShape::Keys(inner) = table.key(word)?.shape else {
                return None;
            };
            let needed = *inner.required().first()?;
            Some(format!("write it with its settings: `{{{word}: {{{needed}: …}}}}`"))
        }
        _ => None,
    })
}

impl WorkflowReader<'_> {
    /// Reports keys and words that the shape does not have. The meaning of a value is not checked.
    fn conforms(&mut self, node: &YamlNode<'_>, shape: &ValueShape) -> bool {
        match (shape, &node.value) {
            (ValueShape::Keys(table), _) => self.conforms_to(node, *table),
            (ValueShape::Words(words), YamlValue::Text(word)) => self.known_word(node, word, words),
            (ValueShape::Strategy, YamlValue::Text(word)) => self.known_word(node, word, &plain_strategies()),
            (ValueShape::Words(words), _) => {
                self.expected::<()>(node, &format!("one of {}", words.join(", ")));
                false
            }
            (ValueShape::ListOf(inner), YamlValue::List(nodes)) => {
                // Every element is checked, even after a wrong one.
                nodes.iter().filter(|node| !self.conforms(node, inner)).count() == 0
            }
            (ValueShape::ListOf(_), _) => {
                self.expected::<()>(node, "a list");
                false
            }
            (ValueShape::AnyOf(shapes), _) => self.conforms_to_any(node, shapes),
            _ => true,
        }
    }

    fn conforms_to(&mut self, node: &YamlNode<'_>, table: MappingTable) -> bool {
        let before = self.problems.found.len();
        let Some(fields) = self.fields(node, table) else {
            return false;
        };
        for entry in fields.entries {
            if let Some(key) = table.key(&entry.key) {
                self.conforms(&entry.node, &key.shape);
            }
        }
        for needed in table.required() {
            if fields.get(needed).is_none() {
                self.missing(&fields, needed, table);
            }
        }
        self.problems.found.len() == before && !self.problems.is_full()
    }

    /// The kind of the value decides which shape applies.
    fn conforms_to_any(&mut self, node: &YamlNode<'_>, shapes: &[ValueShape]) -> bool {
        let kind = |shape: &&ValueShape| match (shape, &node.value) {
            (ValueShape::Keys(_), YamlValue::Map(_)) | (ValueShape::ListOf(_), YamlValue::List(_)) => true,
            (ValueShape::Words(_) | ValueShape::Strategy, YamlValue::Text(_)) => {
                !shapes.iter().any(|shape| matches!(shape, ValueShape::Text | ValueShape::Duration))
            }
            _ => false,
        };
        if let YamlValue::Text(word) = &node.value
            && let Some(help) = help_for_word(word, shapes)
        {
            self.wrong(node.span, format!("`{word}` is not a valid value"), help);
            return false;
        }
        let shape = shapes.iter().find(kind);
        shape.is_none_or(|shape| self.conforms(node, shape))
    }

    fn known_word(&mut self, node: &YamlNode<'_>, word: &str, words: &[&str]) -> bool {
        if words.contains(&word) {
            return true;
        }
        if word.parse::<u64>().is_ok() {
            let message = format!("`{word}` is not a valid value");
            self.wrong(node.span, message, format!("write the number without quotes: {word}"));
        } else {
            self.unknown_word(node, word, words.iter().copied());
        }
        false
    }
}
