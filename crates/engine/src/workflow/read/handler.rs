//! Reads the handler of a command that is no longer retried.

use crate::workflow::diagnostic::DiagnosticCode;
use crate::workflow::keys::MappingTable;
use crate::workflow::model::{Command, Handler};
use crate::workflow::yaml::{YamlNode, YamlValue};

use super::command::CommandContext;
use super::reader::WorkflowReader;

impl WorkflowReader<'_> {
    /// A command, a list of them, or either with settings of its own.
    pub(super) fn handler(&mut self, node: &YamlNode<'_>) -> Option<Handler> {
        if let YamlValue::Text(text) = &node.value {
            self.not_a_text(node, text);
            return None;
        }
        if matches!(node.value, YamlValue::List(_)) {
            return Some(Handler {
                commands: self.handler_commands(node),
                max_attempts: 0,
                fail_workflow: false,
            });
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
                let message = format!("`{}` belongs to one command, and `commands` to several", other.key);
                self.problem(DiagnosticCode::Conflict, other.key_span, message);
            }
            self.handler_commands(list)
        } else {
            let command = self.core(&fields, MappingTable::Handler, CommandContext::NOTHING)?;
            self.check_holds(&command.retry);
            self.now_known(&command);
            vec![command]
        };
        Some(Handler {
            commands,
            max_attempts: max_attempts.unwrap_or(0),
            fail_workflow: fail_workflow.unwrap_or_default(),
        })
    }

    /// Commands of a handler have no handlers of their own.
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
                let key = &*entry.key;
                let nested = ["on_failure", "on_success", "breaker", "on_interrupt"];
                if nested.contains(&key) {
                    let message = format!("`{key}` is not a key of a command in a handler");
                    self.problem(DiagnosticCode::UnknownKey, entry.key_span, message);
                }
            }
        }
        self.commands(node, CommandContext::NOTHING)
    }
}
