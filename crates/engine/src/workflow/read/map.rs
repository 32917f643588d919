//! Reads the map of a map-reduce.

use std::cell::OnceCell;
use std::time::Duration;

use crate::workflow::diagnostic::DiagnosticCode;
use crate::workflow::filter::{FieldPath, Filter, SortBy, SyntaxError};
use crate::workflow::input::{InputFormat, JsonPath, Selection};
use crate::workflow::keys::MappingTable;
use crate::workflow::model::{
    InputSource, Map, MapInput, MaxParallel, SettingPlace, Step, StepPhase, StepWork, Workflow,
};
use crate::workflow::source::Span;
use crate::workflow::yaml::{YamlNode, YamlValue};

use super::command::CommandContext;
use super::layer::{SettingsLayer, deadline_layer};
use super::reader::{MappingFields, WorkflowReader};
use super::settings::FailureRule;

/// For `on_item_failure: retry` if no block sets a number.
const DEFAULT_RETRIES: u32 = 3;

impl WorkflowReader<'_> {
    pub(super) fn map_step(
        &mut self,
        node: &YamlNode<'_>,
        workflow: &mut Workflow,
        outer: &[SettingsLayer],
        outer_rule: &FailureRule,
    ) -> Option<()> {
        let fields = self.fields(node, MappingTable::Map)?;
        let timeouts = fields.read("timeout_config", |node| self.fields(node, MappingTable::TimeoutConfig));
        let errors = fields.read("error_policy", |node| self.fields(node, MappingTable::ErrorPolicy));
        let mut layers = Vec::new();
        if let Some(node) = timeouts.and_then(|fields| fields.get("retry_config")) {
            layers.extend(self.layer(node, SettingPlace::TimeoutConfig));
        }
        if let Some(node) = errors.and_then(|fields| fields.get("retry_config")) {
            layers.extend(self.layer(node, SettingPlace::MapErrorPolicy));
        }
        let rule = errors.map(|fields| self.failure_rule(&fields)).unwrap_or_default().over(outer_rule);
        let timeout = timeouts.and_then(|fields| fields.get("timeout"));
        let timeout = timeout.and_then(|node| self.time_limit(node));
        let deadline = self.item_deadline(&fields, timeouts.as_ref());
        let (completion, on_complete) = self.completion(&fields);
        let selection = self.selection(&fields);
        let max_parallel = fields.read("max_parallel", |node| self.max_parallel(node));
        let input = self.needed(&fields, "input", MappingTable::Map);
        let input = input.and_then(|node| self.input(node));
        let template = self.needed(&fields, "agent_template", MappingTable::Map)?;

        self.scope.item = true;
        // A retry must not pass the earlier of the two deadlines.
        let sooner = deadline.filter(|(item, _)| workflow.deadline.is_none_or(|job| *item < job));
        let sooner = sooner.and_then(|(limit, span)| deadline_layer(Some(limit), span));
        let last = rule.retries.map(|span| {
            let mut layer = SettingsLayer::empty(SettingPlace::MapErrorPolicy);
            layer.config = layer.config.attempts(DEFAULT_RETRIES);
            layer.spans.insert("attempts", span);
            layer
        });
        let layers: Vec<_> = sooner.iter().chain(&layers).chain(outer).chain(&last).cloned().collect();
        let around = CommandContext { layers: &layers, shared: Some(&OnceCell::new()), timeout };
        // The commands are read even without a readable input.
        let commands = self.commands(template, around);
        let map = Map {
            input: input?,
            selection,
            max_parallel: max_parallel.unwrap_or(MaxParallel::DEFAULT),
            item_deadline: deadline.map(|(limit, _)| limit),
            tolerance: rule.tolerance(),
            on_item_failure: rule.on_item_failure(),
            completion,
            on_complete,
        };
        let before = workflow.steps.len().checked_sub(1);
        workflow.steps.push(Step {
            name: "map".to_owned(),
            phase: StepPhase::Map,
            needs: before.into_iter().collect(),
            work: StepWork::Map(Box::new(map)),
            commands,
        });
        Some(())
    }

    /// `agent_timeout_secs` may be in the map and in its `timeout_config`, but not with two values.
    fn item_deadline(
        &mut self,
        map: &MappingFields<'_>,
        timeouts: Option<&MappingFields<'_>>,
    ) -> Option<(Duration, Span)> {
        let own = map.get("agent_timeout_secs");
        let inner = timeouts.and_then(|fields| fields.get("agent_timeout_secs"));
        let mut read = |node: Option<&YamlNode<'_>>| {
            let node = node?;
            let limit = self.seconds(node)?;
            if limit.is_zero() {
                self.wrong(node.span, "the time limit of an item cannot be 0", "remove it for no limit");
                return None;
            }
            Some((limit, node.span))
        };
        match (read(own), read(inner)) {
            (Some(first @ (own, _)), Some((inner, span))) if own != inner => {
                let message = format!("`agent_timeout_secs` has two values, {own:?} and {inner:?}");
                self.problem(DiagnosticCode::Conflict, span, message);
                Some(first)
            }
            (first, second) => first.or(second),
        }
    }

    fn input(&mut self, node: &YamlNode<'_>) -> Option<MapInput> {
        if let YamlValue::Text(path) = &node.value {
            return Some(MapInput {
                format: InputFormat::of_path(path),
                source: InputSource::File(self.text_template(node)?),
            });
        }
        let fields = self.fields(node, MappingTable::Input)?;
        let format = fields.read("format", |node| self.variant(node, InputFormat::ALL, InputFormat::word));
        match (fields.get("file"), fields.get("shell")) {
            (Some(file), None) => {
                let by_name = match &file.value {
                    YamlValue::Text(path) => InputFormat::of_path(path),
                    _ => InputFormat::Lines,
                };
                Some(MapInput {
                    format: format.unwrap_or(by_name),
                    source: InputSource::File(self.text_template(file)?),
                })
            }
            (None, Some(shell)) => Some(MapInput {
                format: format.unwrap_or(InputFormat::Lines),
                source: InputSource::Shell(self.shell_template(shell)?),
            }),
            (Some(_), Some(shell)) => {
                let message = "an input is either a `file` or the output of a `shell` command";
                self.problem(DiagnosticCode::Conflict, shell.span, message);
                None
            }
            (None, None) => {
                self.missing(&fields, "file", MappingTable::Input);
                None
            }
        }
    }

    fn selection(&mut self, fields: &MappingFields<'_>) -> Selection {
        let mut count = |key| fields.get(key).and_then(|node| self.count(node));
        let offset = count("offset").unwrap_or(0);
        let max_items = count("max_items");
        let size = |count| usize::try_from(count).unwrap_or(usize::MAX);
        Selection {
            json_path: self.expression(fields, "json_path", JsonPath::parse),
            filter: self.expression(fields, "filter", Filter::parse),
            sort_by: self.expression(fields, "sort_by", SortBy::parse),
            distinct: self.expression(fields, "distinct", FieldPath::parse),
            offset: size(offset),
            max_items: max_items.map(size),
        }
    }

    fn expression<T>(
        &mut self,
        fields: &MappingFields<'_>,
        key: &str,
        parse: impl Fn(&str) -> Result<T, SyntaxError>,
    ) -> Option<T> {
        let node = fields.get(key)?;
        let text = self.text(node)?;
        let report = |error| self.report_in_text(DiagnosticCode::BadExpression, node, text, &error);
        parse(text).map_err(report).ok()
    }

    fn max_parallel(&mut self, node: &YamlNode<'_>) -> Option<MaxParallel> {
        if let YamlValue::Text(text) = &node.value {
            let name = text.strip_prefix('$').unwrap_or_default();
            let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if !name.is_empty() && name.chars().all(plain) {
                return Some(MaxParallel::Variable(name.to_owned()));
            }
            let message = format!("`{text}` is not a number of items");
            self.wrong(node.span, message, "write a number, or `$NAME` for an environment variable");
            return None;
        }
        let number = self.count32(node)?;
        if number == 0 {
            self.wrong(node.span, "`max_parallel` cannot be 0", "write at least 1");
        }
        Some(MaxParallel::Number(number))
    }
}
