//! Which names a template may use, and the templates themselves.

use std::collections::BTreeSet;

use crate::workflow::diagnostic::DiagnosticCode;
use crate::workflow::filter::SyntaxError;
use crate::workflow::source::Span;
use crate::workflow::template::{JsonTemplate, KnownNames, Reference, Root, ShellTemplate, TextTemplate};
use crate::workflow::yaml::{YamlNode, YamlValue};

use super::reader::WorkflowReader;

#[derive(Clone, Debug, Default)]
pub(crate) struct NameScope {
    pub(super) item: bool,
    pub(super) map: bool,
    /// Names captured anywhere in the file, and those captured so far.
    pub(super) captured: BTreeSet<String>,
    pub(super) captured_so_far: BTreeSet<String>,
    /// Captured for single items, by commands of a map that has ended.
    pub(super) ended: BTreeSet<String>,
    /// Names that only the handler being read may use.
    pub(super) handler: Option<BTreeSet<String>>,
    /// Commands named anywhere in the file, and those read so far.
    pub(super) steps: BTreeSet<String>,
    pub(super) steps_so_far: BTreeSet<String>,
}

impl NameScope {
    /// Collects every name that a command of the file captures or has.
    pub(super) fn survey(&mut self, node: &YamlNode<'_>) {
        match &node.value {
            YamlValue::List(nodes) => nodes.iter().for_each(|node| self.survey(node)),
            YamlValue::Map(entries) => {
                for entry in entries {
                    match (&*entry.key, &entry.node.value) {
                        ("capture_output", YamlValue::Text(name)) => {
                            self.captured.insert(name.to_string());
                        }
                        ("id", YamlValue::Text(name)) => {
                            self.steps.insert(name.to_string());
                        }
                        // These hold data of the author, in which the keys have no meaning.
                        ("body" | "init" | "headers" | "env" | "labels" | "attributes", _) => {}
                        _ => self.survey(&entry.node),
                    }
                }
            }
            _ => {}
        }
    }
}

impl WorkflowReader<'_> {
    pub(super) fn shell_template(&mut self, node: &YamlNode<'_>) -> Option<ShellTemplate> {
        let text = self.text(node)?;
        let parsed = ShellTemplate::parse(text, &self.names());
        let template = self.template(node, text, parsed)?;
        self.check_references(node.span, template.references());
        Some(template)
    }

    pub(super) fn text_template(&mut self, node: &YamlNode<'_>) -> Option<TextTemplate> {
        let text = self.text(node)?;
        self.parsed_text(node, text)
    }

    /// A text, or a number or flag used as text, as in `PORT: 8080`.
    pub(super) fn scalar_template(&mut self, node: &YamlNode<'_>) -> Option<TextTemplate> {
        match node.value {
            YamlValue::Bool(_) | YamlValue::Integer(_) | YamlValue::Large(_) | YamlValue::Float(_) => {
                let written = self.written(node).to_owned();
                self.parsed_text(node, &written)
            }
            _ => self.text_template(node),
        }
    }

    fn parsed_text(&mut self, node: &YamlNode<'_>, text: &str) -> Option<TextTemplate> {
        let parsed = TextTemplate::parse(text, &self.names());
        let template = self.template(node, text, parsed)?;
        self.check_references(node.span, template.references());
        Some(template)
    }

    pub(super) fn json_template(&mut self, node: &YamlNode<'_>) -> Option<JsonTemplate> {
        match JsonTemplate::parse(&node.to_json(), &self.names()) {
            Ok(template) => {
                self.check_references(node.span, template.references());
                Some(template)
            }
            Err(errors) => {
                for error in errors {
                    let at = error.pointer;
                    let message = format!("{} (in `{at}`)", error.error.message);
                    self.report(DiagnosticCode::UnknownName, node.span, message, error.error.help);
                }
                None
            }
        }
    }

    fn names(&self) -> KnownNames<'_> {
        KnownNames {
            item: self.scope.item,
            map: self.scope.map,
            captured: &self.scope.captured,
            steps: &self.scope.steps,
        }
    }

    fn template<T>(
        &mut self,
        node: &YamlNode<'_>,
        text: &str,
        parsed: Result<T, Vec<SyntaxError>>,
    ) -> Option<T> {
        for error in parsed.as_ref().err().into_iter().flatten() {
            self.report_in_text(DiagnosticCode::UnknownName, node, text, error);
        }
        parsed.ok()
    }

    /// Reports an error in a text value.
    pub(super) fn report_in_text(
        &mut self,
        code: DiagnosticCode,
        node: &YamlNode<'_>,
        text: &str,
        error: &SyntaxError,
    ) {
        if self.problems.is_full() {
            return self.problems.count();
        }
        let span = self.source.locate(node.span, text, error.range.clone());
        self.report(code, span, error.message.clone(), error.help.clone());
    }

    /// Reports names that only a later command provides.
    fn check_references<'r>(&mut self, span: Span, references: impl Iterator<Item = &'r Reference>) {
        for reference in references {
            let (name, known) = match reference.root() {
                Root::Captured(name) => (name, self.scope.captured_so_far.contains(name)),
                Root::Step(name) => (name, self.scope.steps_so_far.contains(name)),
                _ => continue,
            };
            let inside = self.scope.handler.as_ref();
            if !known && !inside.is_some_and(|names| names.contains(name)) {
                let written = format!("${{{}", reference.text());
                let place = self.source.find(span, &written);
                let (message, help) = if self.scope.ended.contains(name) {
                    let help = "use `${map.results}` for the results of the items";
                    (format!("`{name}` is available only in the map"), help)
                } else {
                    let help = "capture it in an earlier command";
                    let message = format!("no earlier command provides `{name}`");
                    (message, help)
                };
                self.problem_with_help(DiagnosticCode::UnknownName, place, message, help);
            }
        }
    }
}
