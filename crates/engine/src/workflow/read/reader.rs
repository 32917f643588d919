//! The state of reading a file, and the readers of single values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use undaunted_policy::BreakerSettings;
use undaunted_policy::spelling::parse_duration;

use crate::workflow::check::Operator;
use crate::workflow::diagnostic::{Diagnostic, DiagnosticCode, Problems, nearest};
use crate::workflow::keys::{MappingKey, MappingTable};
use crate::workflow::model::{FlowGoals, ResolvedRetry};
use crate::workflow::source::{Source, Span};
use crate::workflow::yaml::{YamlEntry, YamlNode, YamlValue};

use super::names::NameScope;

pub(crate) struct WorkflowReader<'s> {
    pub(crate) source: &'s Source,
    pub(super) operator: &'s Operator,
    /// Replaces the goals and the initial attributes of the file.
    pub(crate) aimed_at: Option<&'s FlowGoals>,
    /// Whether the text was accepted before, perhaps by a release that had fewer rules.
    pub(crate) is_stored: bool,
    /// Whether an unknown key is reported with all known ones, for definitions that come from other systems.
    pub(crate) lists_keys: bool,
    pub(crate) problems: Problems,
    pub(super) name: Option<String>,
    /// Their names are keys of commands.
    pub(super) agents: BTreeSet<String>,
    pub(super) scope: NameScope,
    /// Commands read so far; of those without an id, the ones outside and inside handlers; and all ids.
    pub(super) commands: u64,
    pub(super) places: u64,
    pub(super) handlers: u64,
    pub(super) ids: BTreeMap<Box<str>, Span>,
    pub(super) rules: usize,
    /// Shared by all commands that are not retried.
    pub(super) once: Arc<ResolvedRetry>,
    pub(super) breakers: BTreeMap<String, (BreakerSettings, Span)>,
}

#[derive(Clone, Copy)]
pub(crate) struct MappingFields<'n> {
    pub(crate) span: Span,
    pub(super) entries: &'n [YamlEntry<'n>],
}

impl<'n> MappingFields<'n> {
    pub(crate) fn get(&self, key: &str) -> Option<&'n YamlNode<'n>> {
        let entry = self.entries.iter().find(|entry| &*entry.key == key)?;
        Some(&entry.node)
    }

    pub(crate) fn read<T>(&self, key: &str, read: impl FnOnce(&'n YamlNode<'n>) -> Option<T>) -> Option<T> {
        self.get(key).and_then(read)
    }

    /// The place to report a problem with the mapping as a whole.
    pub(super) fn first_key_span(&self) -> Span {
        self.entries.first().map_or(self.span, |entry| entry.key_span)
    }

    pub(crate) fn key_span(&self, key: &str) -> Span {
        let entry = self.entries.iter().find(|entry| &*entry.key == key);
        entry.map_or(self.span, |entry| entry.key_span)
    }
}

impl<'s> WorkflowReader<'s> {
    pub(crate) fn new(source: &'s Source, operator: &'s Operator) -> Self {
        #[cfg(feature = "count-checks")]
        crate::workflow::check::count_check();
        Self {
            source,
            operator,
            aimed_at: None,
            is_stored: false,
            lists_keys: false,
            problems: Problems::default(),
            name: None,
            agents: BTreeSet::new(),
            scope: NameScope::default(),
            commands: 0,
            places: 0,
            handlers: 0,
            ids: BTreeMap::new(),
            rules: 0,
            once: Arc::new(ResolvedRetry::once()),
            breakers: BTreeMap::new(),
        }
    }

    pub(crate) fn problem(&mut self, code: DiagnosticCode, span: Span, message: impl Into<String>) {
        self.problems.push(Diagnostic::new(code, span, message));
    }

    pub(crate) fn problem_with_help(
        &mut self,
        code: DiagnosticCode,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.problems.push(Diagnostic::new(code, span, message).help(help));
    }

    pub(crate) fn wrong(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.problem_with_help(DiagnosticCode::WrongValue, span, message, help);
    }

    pub(super) fn report(&mut self, code: DiagnosticCode, span: Span, message: String, help: Option<String>) {
        let problem = Diagnostic::new(code, span, message);
        self.problems.push(Diagnostic { help, ..problem });
    }

    /// Reports keys that the table does not have.
    pub(crate) fn fields<'n>(
        &mut self,
        node: &'n YamlNode<'n>,
        table: MappingTable,
    ) -> Option<MappingFields<'n>> {
        let YamlValue::Map(entries) = &node.value else {
            return self.expected(node, &format!("a mapping with the keys of {}", table.title()));
        };
        for entry in entries {
            if table.key(&entry.key).is_none() && !self.is_agent(table, &entry.key) {
                self.unknown_key(entry, table);
            }
        }
        Some(MappingFields { span: node.span, entries })
    }

    pub(super) fn is_agent(&self, table: MappingTable, key: &str) -> bool {
        matches!(table, MappingTable::Command | MappingTable::Handler) && self.agents.contains(key)
    }

    fn unknown_key(&mut self, entry: &YamlEntry<'_>, table: MappingTable) {
        if self.problems.is_full() {
            return self.problems.count();
        }
        let known = || table.keys().map(MappingKey::name);
        let message = format!("`{}` is not a key of {}", entry.key, table.title());
        let all = || format!("known keys are {}", known().collect::<Vec<_>>().join(", "));
        let help = match nearest(&entry.key, known()) {
            _ if self.lists_keys => all(),
            _ if &*entry.key == "<<" => "merge keys are not supported".to_owned(),
            _ if table == MappingTable::Map && &*entry.key == "retry_config" => {
                "move it into `error_policy` or `timeout_config`".to_owned()
            }
            Some(near) => format!("did you mean `{near}`?"),
            None => match elsewhere(&entry.key) {
                Some(tables) => format!("`{}` is a key of {tables}", entry.key),
                None => all(),
            },
        };
        self.problem_with_help(DiagnosticCode::UnknownKey, entry.key_span, message, help);
    }

    /// Reports the problem; always `None`.
    pub(crate) fn expected<T>(&mut self, node: &YamlNode<'_>, what: &str) -> Option<T> {
        let message = format!("expected {what}, found {}", node.kind());
        self.problem(DiagnosticCode::WrongValue, node.span, message);
        None
    }

    pub(crate) fn missing(&mut self, fields: &MappingFields<'_>, key: &str, table: MappingTable) {
        let start = fields.span.start;
        let message = format!("{} needs `{key}`", table.title());
        let end = fields.span.end.min(start.saturating_add(1));
        self.problem(DiagnosticCode::MissingKey, Span { start, end }, message);
    }

    pub(super) fn needed<'n>(
        &mut self,
        fields: &MappingFields<'n>,
        key: &str,
        table: MappingTable,
    ) -> Option<&'n YamlNode<'n>> {
        let node = fields.get(key);
        if node.is_none() {
            self.missing(fields, key, table);
        }
        node
    }

    pub(crate) fn text<'n>(&mut self, node: &'n YamlNode<'n>) -> Option<&'n str> {
        match &node.value {
            YamlValue::Text(text) => Some(text),
            YamlValue::Null | YamlValue::List(_) | YamlValue::Map(_) => self.expected(node, "text"),
            _ => {
                let help = format!("put it in quotes: \"{}\"", self.written(node));
                self.wrong(node.span, format!("expected text, found {}", node.kind()), help);
                None
            }
        }
    }

    /// A number or a flag as written in the file, where it may be used as text.
    pub(crate) fn written<'n>(&self, node: &'n YamlNode<'n>) -> &'n str
    where
        's: 'n,
    {
        let written = self.source.text().get(node.span.range());
        match &node.value {
            YamlValue::Text(text) => text,
            _ => written.unwrap_or_default(),
        }
    }

    pub(crate) fn flag(&mut self, node: &YamlNode<'_>) -> Option<bool> {
        if let YamlValue::Bool(flag) = node.value {
            return Some(flag);
        }
        let help = match self.written(node) {
            "yes" | "on" => "write `true`",
            "no" | "off" => "write `false`",
            _ => "write `true` or `false`",
        };
        self.wrong(node.span, format!("expected true or false, found {}", node.kind()), help);
        None
    }

    pub(crate) fn count(&mut self, node: &YamlNode<'_>) -> Option<u64> {
        let number = match node.value {
            YamlValue::Integer(number) => u64::try_from(number).ok(),
            YamlValue::Large(number) => Some(number),
            YamlValue::Float(number) => {
                let message = format!("expected a whole number, found {number}");
                self.problem(DiagnosticCode::WrongValue, node.span, message);
                return None;
            }
            _ => return self.expected(node, "a whole number"),
        };
        if number.is_none() {
            self.problem(DiagnosticCode::WrongValue, node.span, "the number cannot be negative");
        }
        number
    }

    /// A count that a limit bounds later: one that is too large to represent is the largest.
    pub(crate) fn any_count(&mut self, node: &YamlNode<'_>) -> Option<u64> {
        match node.value {
            // The parser reads whole numbers beyond 64 bits as this.
            YamlValue::Float(number) if number >= 18_446_744_073_709_551_615.0 => Some(u64::MAX),
            _ => self.count(node),
        }
    }

    pub(crate) fn at_least_one(&mut self, node: &YamlNode<'_>) -> Option<u64> {
        let number = self.count(node)?;
        if number == 0 {
            self.wrong(node.span, "the number cannot be 0", "write at least 1");
        }
        Some(number)
    }

    pub(crate) fn count32(&mut self, node: &YamlNode<'_>) -> Option<u32> {
        let number = self.count(node)?;
        let small = u32::try_from(number).ok();
        if small.is_none() {
            self.wrong(node.span, format!("{number} is too large"), format!("write at most {}", u32::MAX));
        }
        small
    }

    pub(crate) fn number(&mut self, node: &YamlNode<'_>) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "no share or number of seconds is that large")]
        match node.value {
            YamlValue::Integer(number) => Some(number as f64),
            YamlValue::Large(number) => Some(number as f64),
            YamlValue::Float(number) if number.is_finite() => Some(number),
            _ => self.expected(node, "a number"),
        }
    }

    pub(crate) fn duration(&mut self, node: &YamlNode<'_>) -> Option<Duration> {
        let written = match &node.value {
            YamlValue::Text(_) | YamlValue::Integer(_) | YamlValue::Large(_) | YamlValue::Float(_) => {
                self.written(node)
            }
            _ => return self.expected(node, "a duration such as `30s`"),
        };
        match parse_duration(written) {
            Ok(duration) => Some(duration),
            Err(error) => {
                self.wrong(node.span, error.to_string(), error.help());
                None
            }
        }
    }

    pub(crate) fn time_limit(&mut self, node: &YamlNode<'_>) -> Option<Duration> {
        let limit = self.duration(node)?;
        if limit.is_zero() {
            self.wrong(node.span, "the time limit cannot be 0", "remove it for no limit");
            return None;
        }
        Some(limit)
    }

    pub(crate) fn seconds(&mut self, node: &YamlNode<'_>) -> Option<Duration> {
        if let YamlValue::Text(text) = &node.value
            && let Ok(duration) = parse_duration(text)
        {
            let message = format!("expected a number of seconds, found `{text}`");
            self.wrong(node.span, message, format!("write `{}`", duration.as_secs_f64()));
            return None;
        }
        let seconds = self.number(node)?;
        let duration = Duration::try_from_secs_f64(seconds).ok();
        if duration.is_none() {
            let message = format!("{seconds} is not a number of seconds");
            self.problem(DiagnosticCode::WrongValue, node.span, message);
        }
        duration
    }

    pub(crate) fn word<T: Copy>(&mut self, node: &YamlNode<'_>, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(node)?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            self.unknown_word(node, text, words.iter().map(|(word, _)| *word));
        }
        found.map(|(_, meaning)| *meaning)
    }

    /// One of the variants of an enum, by its word.
    pub(crate) fn variant<T: Copy>(
        &mut self,
        node: &YamlNode<'_>,
        all: &[T],
        word: fn(T) -> &'static str,
    ) -> Option<T> {
        let words: Vec<_> = all.iter().map(|variant| (word(*variant), *variant)).collect();
        self.word(node, &words)
    }

    pub(super) fn unknown_word<'w>(
        &mut self,
        node: &YamlNode<'_>,
        word: &str,
        known: impl Iterator<Item = &'w str> + Clone,
    ) {
        let same = known.clone().find(|known| known.eq_ignore_ascii_case(word));
        let help = match same.or_else(|| nearest(word, known.clone())) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("write one of {}", known.collect::<Vec<_>>().join(", ")),
        };
        self.wrong(node.span, format!("`{word}` is not a valid value"), help);
    }

    pub(crate) fn list<'n>(&mut self, node: &'n YamlNode<'n>) -> Option<&'n [YamlNode<'n>]> {
        if let YamlValue::List(nodes) = &node.value {
            return Some(nodes);
        }
        let help = "put `- ` before each element, or `[` and `]` around them";
        self.wrong(node.span, format!("expected a list, found {}", node.kind()), help);
        None
    }

    pub(crate) fn map<'n>(&mut self, node: &'n YamlNode<'n>) -> Option<&'n [YamlEntry<'n>]> {
        if let YamlValue::Map(entries) = &node.value {
            return Some(entries);
        }
        self.expected(node, "a mapping")
    }
}

/// The mappings that have this key, unless they are many.
fn elsewhere(key: &str) -> Option<String> {
    let holders = MappingTable::all().filter(|table| table.key(key).is_some());
    let titles: Vec<_> = holders.map(MappingTable::title).collect();
    match titles.as_slice() {
        [] => None,
        [.., _] if titles.len() > 3 => None,
        [rest @ .., last] if !rest.is_empty() => Some(format!("{} and {last}", rest.join(", "))),
        [only, ..] => Some((*only).to_owned()),
    }
}
