//! Reads what a command does.

use crate::workflow::diagnostic::DiagnosticCode;
use crate::workflow::keys::MappingTable;
use crate::workflow::model::{Action, FunctionAction, HttpAction, HttpBody, HttpProtocol, WriteFile};
use crate::workflow::yaml::{YamlNode, YamlValue};

use super::reader::{MappingFields, WorkflowReader};

impl WorkflowReader<'_> {
    pub(super) fn action(&mut self, fields: &MappingFields<'_>, table: MappingTable) -> Option<Action> {
        let kinds = ["shell", "http", "write_file"];
        let is_kind = |key: &str| kinds.contains(&key) || key == "function" || self.is_agent(table, key);
        let entries = fields.entries.iter();
        let mut actions = entries.filter(|entry| is_kind(&entry.key));
        let (first, second) = (actions.next(), actions.next());
        let Some(first) = first else {
            // An unknown key may be the one that was meant, and is reported already.
            let listed = |key: &str| table.keys().any(|known| known.name() == key);
            if fields.entries.iter().any(|entry| !listed(&entry.key)) {
                return None;
            }
            let agents = self.agents.iter().map(String::as_str);
            let known = kinds.into_iter().chain(agents).take(10);
            let known = known.map(|key| format!("`{key}`")).collect::<Vec<_>>();
            let message = format!("{} does nothing", table.title());
            let help = format!("give it one of {}", known.join(", "));
            let first = fields.entries.first();
            let span = first.map_or(fields.span, |entry| entry.key_span);
            self.problem_with_help(DiagnosticCode::MissingKey, span, message, help);
            return None;
        };
        if let Some(second) = second {
            let (one, other) = (&first.key, &second.key);
            let message = format!("a command does one thing; this one has `{one}` and `{other}`");
            self.problem(DiagnosticCode::Conflict, second.key_span, message);
        }
        match &*first.key {
            "shell" => {
                if matches!(&first.node.value, YamlValue::Text(text) if text.trim().is_empty()) {
                    let message = "the text for the shell is empty";
                    self.problem(DiagnosticCode::WrongValue, first.key_span, message);
                }
                self.shell_template(&first.node).map(Action::Shell)
            }
            "http" => self.http(&first.node).map(Box::new).map(Action::Http),
            "write_file" => self.write_file(&first.node).map(Box::new).map(Action::WriteFile),
            "function" => {
                if !self.operator.has_functions {
                    let message = "no program is there whose function this could be";
                    let help = "functions belong to programs that run jobs themselves; here, use `shell`";
                    self.problem_with_help(DiagnosticCode::WrongValue, first.key_span, message, help);
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
        const METHODS: [(&str, &str); 7] = [
            ("GET", "GET"),
            ("HEAD", "HEAD"),
            ("POST", "POST"),
            ("PUT", "PUT"),
            ("PATCH", "PATCH"),
            ("DELETE", "DELETE"),
            ("OPTIONS", "OPTIONS"),
        ];
        let fields = self.fields(node, MappingTable::Http)?;
        let method = fields.read("method", |node| self.word(node, &METHODS));
        let headers = fields.get("headers");
        let headers = headers.map(|node| self.texts(node, "a header"));
        let body = fields.read("body", |node| match node.value {
            YamlValue::Text(_) => self.text_template(node).map(HttpBody::Text),
            _ => self.json_template(node).map(HttpBody::Json),
        });
        let expect = fields.get("expect").map(|node| self.statuses(node));
        let words = [("plain", HttpProtocol::Plain), ("argyll", HttpProtocol::Argyll)];
        let protocol = fields.read("protocol", |node| self.word(node, &words));
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

    /// An address that begins with a template may be anything; any other must be an HTTP one.
    pub(super) fn check_url(&mut self, node: &YamlNode<'_>, templates: bool) {
        let YamlValue::Text(url) = &node.value else {
            return;
        };
        let plain = url.strip_prefix("http://");
        let plain = plain.or_else(|| url.strip_prefix("https://"));
        let template = url.contains("${");
        if template && !templates {
            let message = "an address of a flow step holds no `${…}`";
            return self.problem(DiagnosticCode::WrongValue, node.span, message);
        }
        let host = plain.and_then(|rest| rest.split(['/', '?', '#']).next());
        if host.is_some_and(|host| host.contains('@')) && !templates {
            let message = "an address of a flow step holds no name or password: everybody sees it";
            return self.problem(DiagnosticCode::WrongValue, node.span, message);
        }
        if url.starts_with("${")
            || plain.is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace) | template)
        {
            return;
        }
        let message = format!("`{url}` is not an address");
        let help = "it begins with `http://` or `https://`";
        self.problem_with_help(DiagnosticCode::WrongValue, node.span, message, help);
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
            let message = format!("`{written}` is not a mode");
            let help = "write it like `0644`";
            self.problem_with_help(DiagnosticCode::WrongValue, node.span, message, help);
        }
        mode
    }
}
