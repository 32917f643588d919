//! What runs when a command has stopped being retried.

use crate::workflow::diagnostic::Code;
use crate::workflow::keys::Table;
use crate::workflow::model::Handler;
use crate::workflow::yaml::{Node, Value};

use super::command::Around;
use super::reader::Reader;

impl Reader<'_> {
    /// A command, a list of them, or either with settings of its own.
    pub(super) fn handler(&mut self, node: &Node<'_>) -> Option<Handler> {
        if matches!(node.value, Value::List(_)) {
            return Some(Handler {
                commands: self.commands(node, Around::NOTHING),
                max_attempts: 0,
                fail_workflow: false,
            });
        }
        let fields = self.fields(node, Table::Handler)?;
        let max_attempts = fields
            .get("max_attempts")
            .and_then(|node| self.count32(node));
        let fail_workflow = fields.get("fail_workflow").and_then(|node| self.flag(node));
        let commands = if let Some(list) = fields.get("commands") {
            let others = fields.entries.iter().find(|entry| {
                !matches!(&*entry.key, "commands" | "max_attempts" | "fail_workflow")
            });
            if let Some(other) = others {
                let message = format!(
                    "`{}` belongs to one command, and `commands` to several",
                    other.key
                );
                self.problem(Code::Conflict, other.key_span, message);
            }
            self.commands(list, Around::NOTHING)
        } else {
            let command = self.core(&fields, Table::Handler, Around::NOTHING)?;
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
}
