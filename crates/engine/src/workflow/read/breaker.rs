//! Circuit breakers: which commands and steps have one, and its name.
//!
//! A breaker is opt-in. `breaker: true` requests one with the default settings, a mapping one with other
//! settings. A request without a `name` uses the breaker of the origin it goes to, which is
//! known when its address is filled in; any other command has one of its own.

use undaunted_policy::{BreakerSettings, WhenOpen};

use crate::task::shorten_name;
use crate::workflow::diagnostic::{Diagnostic, DiagnosticCode};
use crate::workflow::keys::MappingTable;
use crate::workflow::model::{Action, Command, CommandBreaker, FlowStepKind};
use crate::workflow::yaml::{YamlNode, YamlValue};

use super::reader::{MappingFields, WorkflowReader};

enum BreakerKey {
    Absent,
    Declined,
    Given(CommandBreaker),
    /// The problem is reported already.
    Unreadable,
}

impl WorkflowReader<'_> {
    pub(super) fn command_breaker(&mut self, fields: &MappingFields<'_>, command: &mut Command) {
        let is_http = matches!(command.action, Action::Http(_));
        let key = self.breaker_key(fields);
        command.declines_breaker = matches!(key, BreakerKey::Declined);
        let is_wrong = matches!(key, BreakerKey::Unreadable);
        command.breaker = self.resolve_breaker(key, is_http).map(Box::new);
        match &mut command.breaker {
            Some(breaker) if !is_http && breaker.name.is_none() => {
                breaker.name = Some(self.breaker_name(&command.id));
            }
            None if !is_wrong => self.check_holds(&command.retry),
            _ => {}
        }
    }

    /// A sub-flow has no breaker: its own steps may.
    pub(super) fn step_breaker(
        &mut self,
        fields: &MappingFields<'_>,
        kind: Option<&FlowStepKind>,
    ) -> Option<CommandBreaker> {
        let key = self.breaker_key(fields);
        if matches!(kind, Some(FlowStepKind::SubFlow { .. })) {
            if matches!(key, BreakerKey::Given(_)) {
                let message = "`breaker` has no effect on a step of type `flow`";
                let help = "set it on the steps of that flow";
                self.problem_with_help(DiagnosticCode::NoEffect, fields.key_span("breaker"), message, help);
            }
            return None;
        }
        self.resolve_breaker(key, true)
    }

    /// Without a `breaker` key a request has one if the operator says so, or if its job was stored
    /// before breakers were opt-in.
    fn resolve_breaker(&self, key: BreakerKey, is_http: bool) -> Option<CommandBreaker> {
        match key {
            BreakerKey::Given(breaker) => Some(breaker),
            BreakerKey::Absent if is_http && self.operator.breaker_per_origin => {
                Some(CommandBreaker::default())
            }
            BreakerKey::Absent | BreakerKey::Declined | BreakerKey::Unreadable => None,
        }
    }

    fn breaker_key(&mut self, fields: &MappingFields<'_>) -> BreakerKey {
        let Some(node) = fields.get("breaker") else {
            return BreakerKey::Absent;
        };
        let breaker = match node.value {
            YamlValue::Bool(false) => return BreakerKey::Declined,
            YamlValue::Bool(true) => Some(CommandBreaker::default()),
            YamlValue::Map(_) => self.breaker_settings(node),
            _ => {
                let message = format!("expected a breaker, found {}", node.kind());
                self.wrong(node.span, message, "write `breaker: true`, or a mapping with its settings");
                None
            }
        };
        breaker.map_or(BreakerKey::Unreadable, BreakerKey::Given)
    }

    /// The name of a command's own breaker, made of workflow and command. It is unique: names in a file
    /// have no `/`, and origins have several. Jobs of one workflow share the breaker.
    fn breaker_name(&self, command: &str) -> String {
        let named = self.name.as_deref().filter(|name| !name.trim().is_empty());
        let workflow = named.unwrap_or_else(|| stem(self.source.name()));
        let plain = |c: char| {
            if c.is_control() || c.is_whitespace() || c == '/' { '-' } else { c }
        };
        let workflow: String = workflow.trim().chars().map(plain).collect();
        format!("{}/{command}", shorten_name(&workflow))
    }

    fn breaker_settings(&mut self, node: &YamlNode<'_>) -> Option<CommandBreaker> {
        let fields = self.fields(node, MappingTable::Breaker)?;
        let mut settings = BreakerSettings::DEFAULT;
        let name = fields.read("name", |node| self.identifier(node));
        let at_least_one = |reader: &mut Self, key: &str, default| {
            let Some(node) = fields.get(key) else {
                return default;
            };
            let count = reader.count32(node);
            if count == Some(0) {
                reader.wrong(node.span, format!("`{key}` cannot be 0"), "write at least 1");
            }
            count.unwrap_or(default)
        };
        settings.failure_threshold = at_least_one(self, "failure_threshold", settings.failure_threshold);
        settings.half_open_max_calls =
            at_least_one(self, "half_open_max_calls", settings.half_open_max_calls);
        let timeout = fields.read("recovery_timeout", |node| self.duration(node));
        settings.recovery_timeout = timeout.unwrap_or(settings.recovery_timeout);
        let words = [("hold", WhenOpen::Hold), ("fail", WhenOpen::Fail)];
        settings.when_open = fields.read("when_open", |node| self.word(node, &words)).unwrap_or_default();
        settings.max_hold = fields.read("max_hold", |node| self.duration(node));
        if settings.max_hold.is_some() && settings.when_open == WhenOpen::Fail {
            let message = "`max_hold` has no effect with `when_open: fail`";
            self.problem(DiagnosticCode::NoEffect, fields.key_span("max_hold"), message);
        }
        if let Some(name) = &name {
            let first = self.breakers.entry(name.clone());
            let (other, place) = *first.or_insert((settings, fields.span));
            if other != settings {
                let message = format!("the breaker `{name}` is defined twice with different settings");
                let problem = Diagnostic::new(DiagnosticCode::Conflict, fields.key_span("name"), message);
                self.problems.push(problem.related(place, "first defined here"));
            }
        }
        Some(CommandBreaker { name, settings })
    }
}

/// The name of a file without folder and extension.
fn stem(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    let stem = name.strip_suffix(".yaml").or_else(|| name.strip_suffix(".yml"));
    match stem.unwrap_or(name) {
        // A workflow from standard input has `-` as its file.
        "" | "-" => "standard input",
        stem => stem,
    }
}
