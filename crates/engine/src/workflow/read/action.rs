//! Reads the action of a command: shell text, HTTP request, file, function or agent.

use crate::workflow::diagnostic::DiagnosticCode;
use crate::workflow::keys::{HTTP_METHODS, MappingTable};
use crate::workflow::model::{Action, FunctionAction, HttpAction, HttpBody, HttpProtocol, WriteFile};
use crate::workflow::yaml::{YamlNode, YamlValue};

use super::reader::{MappingFields, WorkflowReader};

impl WorkflowReader<'_> {
    pub(super) fn action(&mut self, fields: &MappingFields<'_>, table: MappingTable) -> Option<Action> {
        let kinds = ["shell", "http", "write_file"];
        let is_kind = |key: &str| kinds.contains(&key) || key == "function" || self.is_agent(table, key);
        let mut actions = fields.entries.iter().filter(|entry| is_kind(&entry.key));
        let (first, second) = (actions.next(), actions.next());
        let Some(first) = first else {
            // An unknown key may be a misspelled action, and is reported already.
            if fields.entries.iter().any(|entry| table.key(&entry.key).is_none()) {
                return None;
            }
            let agents = self.agents.iter().map(String::as_str);
            let known = kinds.into_iter().chain(agents).take(10);
            let known = known.map(|key| format!("`{key}`")).collect::<Vec<_>>();
            let message = format!("{} needs an action", table.title());
            let help = format!("add one of {}", known.join(", "));
            self.problem_with_help(DiagnosticCode::MissingKey, fields.first_key_span(), message, help);
            return None;
        };
        if let Some(second) = second {
            let (one, other) = (&first.key, &second.key);
            let message =
                format!("a command can have only one action, but this one has `{one}` and `{other}`");
            self.problem(DiagnosticCode::Conflict, second.key_span, message);
        }
        match &*first.key {
            "shell" => {
                if matches!(&first.node.value, YamlValue::Text(text) if text.trim().is_empty()) {
                    self.problem(DiagnosticCode::WrongValue, first.key_span, "the shell script is empty");
                }
                self.shell_template(&first.node).map(Action::Shell)
            }
            "http" => self.http(&first.node).map(Box::new).map(Action::Http),
            "write_file" => self.write_file(&first.node).map(Box::new).map(Action::WriteFile),
            "function" => {
                if !self.operator.has_functions {
                    let message = "functions are not available here";
                    let help = "only a program that embeds the runner has functions; use `shell` instead";
                    self.wrong(first.key_span, message, help);
                }
                let function = self.function(&first.node)?;
                Some(Action::Function(Box::new(function)))
            }
            agent => Some(Action::Agent { name: agent.to_owned(), prompt: self.text_template(&first.node)? }),
        }
    }

    fn function(&mut self, node: &YamlNode<'_>) -> Option<FunctionAction> {
        if let YamlValue::Text(_) = &node.value {
            let name = self.text(node)?.to_owned();
            return Some(FunctionAction { name, with: None });
        }
        let fields = self.fields(node, MappingTable::Function)?;
        let with = fields.read("with", |node| self.json_template(node));
        let name = self.needed(&fields, "name", MappingTable::Function)?;
        let name = self.text(name)?.to_owned();
        Some(FunctionAction { name, with })
    }

    fn http(&mut self, node: &YamlNode<'_>) -> Option<HttpAction> {
        let methods = HTTP_METHODS.map(|method| (method, method));
        let fields = self.fields(node, MappingTable::Http)?;
        let method = fields.read("method", |node| self.word(node, &methods));
        let headers = fields.get("headers").map(|node| self.texts(node, "a header"));
        let body = fields.read("body", |node| match node.value {
            YamlValue::Text(_) => self.text_template(node).map(HttpBody::Text),
            _ => self.json_template(node).map(HttpBody::Json),
        });
        let expect = fields.get("expect").map(|node| self.statuses(node));
        let protocol =
            fields.read("protocol", |node| self.variant(node, HttpProtocol::ALL, HttpProtocol::word));
        let url = self.needed(&fields, "url", MappingTable::Http)?;
        self.check_url(url, true);
        Some(HttpAction {
            method: method.unwrap_or("GET").to_owned(),
            url: self.text_template(url)?,
            headers: headers.unwrap_or_default(),
            body,
            expect: expect.unwrap_or_else(|| vec![200..=299]),
            protocol: protocol.unwrap_or_default(),
        })
    }

    /// An address that begins with a template is not checked; any other must be an HTTP address.
    pub(super) fn check_url(&mut self, node: &YamlNode<'_>, templates: bool) {
        let YamlValue::Text(url) = &node.value else {
            return;
        };
        let plain = url.strip_prefix("http://");
        let plain = plain.or_else(|| url.strip_prefix("https://"));
        let template = url.contains("${");
        if template && !templates {
            let message = "the endpoint of a flow step cannot contain `${…}`";
            return self.problem(DiagnosticCode::WrongValue, node.span, message);
        }
        let host = plain.and_then(|rest| rest.split(['/', '?', '#']).next());
        if host.is_some_and(|host| host.contains('@')) && !templates {
            let message =
                "the endpoint of a flow step cannot contain a user name or password: it is not kept secret";
            return self.problem(DiagnosticCode::WrongValue, node.span, message);
        }
        if url.starts_with("${")
            || plain.is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace) | template)
        {
            return;
        }
        let message = format!("`{url}` is not an HTTP URL");
        self.wrong(node.span, message, "write a URL that begins with `http://` or `https://`");
    }

    fn write_file(&mut self, node: &YamlNode<'_>) -> Option<WriteFile> {
        let fields = self.fields(node, MappingTable::WriteFile)?;
        let mode = fields.read("mode", |node| self.permissions(node));
        let create_dirs = fields.read("create_dirs", |node| self.flag(node));
        let path = self.needed(&fields, "path", MappingTable::WriteFile);
        let path = path.and_then(|node| self.text_template(node));
        let content = self.needed(&fields, "content", MappingTable::WriteFile);
        let content = content.and_then(|node| self.scalar_template(node));
        Some(WriteFile { path: path?, content: content?, create_dirs: create_dirs.unwrap_or_default(), mode })
    }

    fn permissions(&mut self, node: &YamlNode<'_>) -> Option<u32> {
        let written = self.written(node);
        let digits = written.strip_prefix("0o").unwrap_or(written);
        let mode = u32::from_str_radix(digits, 8).ok();
        let mode = mode.filter(|mode| *mode <= 0o7777);
        if mode.is_none() {
            self.wrong(node.span, format!("`{written}` is not a file mode"), "write it like `0644`");
        }
        mode
    }
}
