//! Retry settings from several places, laid over each other.

use std::collections::BTreeMap;

use undaunted_policy::{Backoff, Parameter, PolicyError, RetryConfig, RuleAction};

use crate::workflow::diagnostic::{Diagnostic, DiagnosticCode};
use crate::workflow::keys::MappingTable;
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
    /// Asks for retries and sets nothing.
    pub(crate) fn empty(place: SettingPlace) -> Self {
        Self { place, config: RetryConfig::new(), spans: BTreeMap::new() }
    }
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
                    let message = format!("this file has more than {MOST_RULES} rules");
                    self.problem(DiagnosticCode::TooLarge, entry.key_span, message);
                    continue;
                }
            }
            let mut keys = MappingTable::RetryConfig.keys();
            let key = keys.find(|key| key.name() == &*entry.key);
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
                    self.problems.push(said(DiagnosticCode::WrongValue, span, &error.message));
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
            // A deadline limits retries, it does not ask for any.
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
                let problem = said(DiagnosticCode::WrongValue, span, &error.to_string());
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
        let message = format!("rule {number} holds, but the command has no breaker");
        let help = "add `breaker: true` to the command; a handler cannot have one";
        self.problem_with_help(DiagnosticCode::NoBreaker, span, message, help);
    }
}

/// Splits a message of the policy crate into what is wrong and, behind a semicolon, the help.
pub(super) fn said(code: DiagnosticCode, span: Span, text: &str) -> Diagnostic {
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
