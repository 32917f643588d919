//! Commands, and the handlers of commands that are no longer retried.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::workflow::diagnostic::{Diagnostic, DiagnosticCode};
use crate::workflow::keys::{MappingTable, NOT_IN_HANDLERS, RESERVED_NAMES};
use crate::workflow::model::{
    Action, Capture, CaptureFormat, Command, Handler, OnInterrupt, ResolvedRetry, SettingPlace,
};
use crate::workflow::yaml::{YamlNode, YamlValue};

use super::layer::SettingsLayer;
use super::reader::{MappingFields, WorkflowReader};

/// The settings that the commands of one part of the workflow inherit.
#[derive(Clone, Copy)]
pub(super) struct CommandContext<'a> {
    /// The closest first.
    pub(super) layers: &'a [SettingsLayer],
    /// The policy of a command without settings of its own, resolved once for all of them.
    pub(super) shared: Option<&'a OnceCell<Arc<ResolvedRetry>>>,
    /// Of an attempt, if the command sets none.
    pub(super) timeout: Option<Duration>,
}

impl CommandContext<'_> {
    pub(super) const NOTHING: Self = CommandContext { layers: &[], shared: None, timeout: None };
}

impl WorkflowReader<'_> {
    /// A list of commands, or `{commands: […]}`.
    pub(super) fn commands(&mut self, node: &YamlNode<'_>, around: CommandContext<'_>) -> Vec<Command> {
        let mut commands = Vec::new();
        self.each_command(node, around, |command| commands.push(command));
        commands
    }

    /// Passes the commands on one by one, because there may be a million.
    pub(super) fn each_command(
        &mut self,
        node: &YamlNode<'_>,
        around: CommandContext<'_>,
        mut take: impl FnMut(Command),
    ) {
        let list = match &node.value {
            YamlValue::Map(entries) if entries.iter().any(|entry| &*entry.key == "commands") => {
                let fields = self.fields(node, MappingTable::CommandList);
                fields.and_then(|fields| fields.get("commands"))
            }
            _ => Some(node),
        };
        let Some(nodes) = list.and_then(|list| self.list(list)) else {
            return;
        };
        if nodes.is_empty() {
            self.problem(DiagnosticCode::WrongValue, node.span, "the list of commands is empty");
        }
        for node in nodes {
            if let Some(command) = self.command(node, around) {
                take(command);
            }
        }
    }

    pub(super) fn command(&mut self, node: &YamlNode<'_>, around: CommandContext<'_>) -> Option<Command> {
        if let YamlValue::Text(text) = &node.value {
            self.refuse_text(node, text);
            return None;
        }
        let fields = self.fields(node, MappingTable::Command)?;
        let mut command = self.core(&fields, MappingTable::Command, around)?;
        self.command_breaker(&fields, &mut command);
        command.on_interrupt = fields
            .read("on_interrupt", |node| self.variant(node, OnInterrupt::ALL, OnInterrupt::word))
            .unwrap_or_default();
        if let Some(node) = fields.get("on_failure") {
            // A handler may refer to the failed command. Its captured outputs end with it, because
            // it does not always run.
            self.scope.handler = Some(BTreeSet::from([command.id.clone()]));
            command.on_failure = self.handler(node).map(Box::new);
            self.scope.handler = None;
        }
        self.add_names(&command);
        let next = fields.get("on_success");
        command.on_success = next.map_or_else(Vec::new, |node| self.follow_up(node));
        Some(command)
    }

    /// The kind of a command and its number among the commands of the workflow, or of its handlers.
    fn generated_id(&mut self, kind: &str) -> String {
        let (part, place) = if self.scope.handler.is_some() {
            ("on_failure-", &mut self.handlers)
        } else {
            ("", &mut self.places)
        };
        *place = place.saturating_add(1);
        format!("{part}{kind}-{place}")
    }

    pub(super) fn refuse_text(&mut self, node: &YamlNode<'_>, text: &str) {
        self.wrong(node.span, "a command must be a mapping, not text", format!("write `shell: {text}`"));
    }

    pub(super) fn core(
        &mut self,
        fields: &MappingFields<'_>,
        table: MappingTable,
        around: CommandContext<'_>,
    ) -> Option<Command> {
        let index = self.commands;
        self.commands = index.saturating_add(1);
        let action = self.action(fields, table);
        let id = fields.read("id", |node| self.identifier(node));
        let timeout = fields.read("timeout", |node| self.time_limit(node));
        let env = fields.get("env").map(|node| self.texts(node, "an environment variable"));
        let working_dir = fields.read("working_dir", |node| self.text_template(node));
        let capture = self.capture(fields);
        let output_limit = fields.read("output_limit", |node| self.at_least_one(node));
        let retry = self.retry(fields, around);
        let action = action?;
        self.report_unused_keys(fields, &action);
        let span = fields.first_key_span();
        let id = id.unwrap_or_else(|| self.generated_id(action.kind()));
        if let Some(first) = self.ids.insert(id.as_str().into(), span) {
            let message = format!("two commands have the id `{id}`");
            let problem = Diagnostic::new(DiagnosticCode::DuplicateId, span, message);
            self.problems.push(problem.related(first, "first used here"));
        }
        Some(Command {
            timeout: timeout.or(around.timeout),
            env: env.unwrap_or_default(),
            working_dir,
            capture,
            output_limit,
            ..Command::new(id, index, action, retry, span)
        })
    }

    fn report_unused_keys(&mut self, fields: &MappingFields<'_>, action: &Action) {
        let unused = action.unused_keys();
        for entry in fields.entries {
            if unused.contains(&&*entry.key) {
                let (key, kind) = (&*entry.key, action.kind());
                let message = format!("`{key}` has no effect on a `{kind}` command");
                // A program that embeds the runner sees only errors.
                let (code, help) = if matches!(action, Action::Function(_)) {
                    (DiagnosticCode::Conflict, "pass values to the function in `with`")
                } else {
                    (DiagnosticCode::NoEffect, "remove it")
                };
                self.problem_with_help(code, entry.key_span, message, help);
            }
        }
    }

    fn retry(&mut self, fields: &MappingFields<'_>, around: CommandContext<'_>) -> Arc<ResolvedRetry> {
        let own = fields.read("retry_config", |node| self.layer(node, SettingPlace::Command));
        match (&own, around.shared) {
            (None, Some(shared)) => {
                let resolve = || Arc::new(self.resolve(around.layers.iter()));
                Arc::clone(shared.get_or_init(resolve))
            }
            (None, None) => Arc::clone(&self.once),
            (Some(_), _) => Arc::new(self.resolve(own.iter().chain(around.layers))),
        }
    }

    fn capture(&mut self, fields: &MappingFields<'_>) -> Option<Capture> {
        let format =
            fields.read("capture_format", |node| self.variant(node, CaptureFormat::ALL, CaptureFormat::word));
        let Some(node) = fields.get("capture_output") else {
            if format.is_some() {
                let span = fields.key_span("capture_format");
                let message = "`capture_format` has no effect without `capture_output`";
                self.problem(DiagnosticCode::NoEffect, span, message);
            }
            return None;
        };
        let name = self.text(node)?;
        let first = |c: char| c.is_ascii_alphabetic() || c == '_';
        let rest = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let taken = RESERVED_NAMES.contains(&name);
        if !name.starts_with(first) || !name.chars().all(rest) || taken {
            let message = format!("`{name}` cannot be the name of an output");
            let help = if taken {
                "choose another name; this one is reserved"
            } else {
                "use letters, digits and `_`, and begin with a letter"
            };
            self.wrong(node.span, message, help);
            return None;
        }
        Some(Capture { name: name.to_owned(), format: format.unwrap_or_default() })
    }

    fn follow_up(&mut self, node: &YamlNode<'_>) -> Vec<Command> {
        match node.value {
            YamlValue::List(_) => self.commands(node, CommandContext::NOTHING),
            _ => self.command(node, CommandContext::NOTHING).into_iter().collect(),
        }
    }

    pub(super) fn add_names(&mut self, command: &Command) {
        let capture = command.capture.as_ref().map(|capture| capture.name.clone());
        if let Some(inside) = &mut self.scope.handler {
            inside.insert(command.id.clone());
            inside.extend(capture);
        } else {
            self.scope.steps_so_far.insert(command.id.clone());
            self.scope.captured_so_far.extend(capture);
        }
    }

    /// A command, a list of them, or either with settings of its own.
    pub(super) fn handler(&mut self, node: &YamlNode<'_>) -> Option<Handler> {
        if let YamlValue::Text(text) = &node.value {
            self.refuse_text(node, text);
            return None;
        }
        if matches!(node.value, YamlValue::List(_)) {
            let commands = self.handler_commands(node);
            return Some(Handler { commands, max_attempts: 0, fail_workflow: false });
        }
        let fields = self.fields(node, MappingTable::Handler)?;
        let max_attempts = fields.read("max_attempts", |node| self.count32(node));
        let fail_workflow = fields.read("fail_workflow", |node| self.flag(node));
        let commands = if let Some(list) = fields.get("commands") {
            let others = fields
                .entries
                .iter()
                .find(|entry| !matches!(&*entry.key, "commands" | "max_attempts" | "fail_workflow"));
            if let Some(other) = others {
                let message = format!("`{}` cannot be combined with `commands`", other.key);
                self.problem(DiagnosticCode::Conflict, other.key_span, message);
            }
            self.handler_commands(list)
        } else {
            let command = self.core(&fields, MappingTable::Handler, CommandContext::NOTHING)?;
            self.check_holds(&command.retry);
            self.add_names(&command);
            vec![command]
        };
        Some(Handler {
            commands,
            max_attempts: max_attempts.unwrap_or(0),
            fail_workflow: fail_workflow.unwrap_or_default(),
        })
    }

    fn handler_commands(&mut self, node: &YamlNode<'_>) -> Vec<Command> {
        let inner = match &node.value {
            // `{commands: […]}` is the same as the list itself.
            YamlValue::Map(entries) => entries.iter().find(|entry| &*entry.key == "commands"),
            _ => None,
        };
        if let Some(inner) = inner {
            return self.handler_commands(&inner.node);
        }
        if let YamlValue::List(nodes) = &node.value {
            let maps = nodes.iter().filter_map(|node| match &node.value {
                YamlValue::Map(entries) => Some(entries),
                _ => None,
            });
            for entry in maps.flatten() {
                if NOT_IN_HANDLERS.contains(&&*entry.key) {
                    let message = format!("`{}` is not a key of a command in a handler", entry.key);
                    self.problem(DiagnosticCode::UnknownKey, entry.key_span, message);
                }
            }
        }
        self.commands(node, CommandContext::NOTHING)
    }
}
