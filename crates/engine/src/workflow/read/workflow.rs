//! Reads the whole file.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::workflow::diagnostic::DiagnosticCode;
use crate::workflow::keys::{MappingTable, TOLERANCE_KEYS, keys_of_commands, keys_of_other_modes};
use crate::workflow::model::{
    PoolRequest, SecretSource, SettingPlace, Step, StepPhase, StepWork, Workflow, WorkflowMode,
};
use crate::workflow::yaml::{YamlNode, YamlValue};

use super::command::CommandContext;
use super::layer::{SettingsLayer, deadline_layer};
use super::reader::{MappingFields, WorkflowReader};
use super::settings::FailureRule;

/// The workflow, as far as it could be read.
pub(crate) fn workflow(reader: &mut WorkflowReader<'_>, root: &YamlNode<'_>) -> Option<Workflow> {
    reader.scope.survey(root);
    reader.agents.insert("claude".to_owned());
    if matches!(root.value, YamlValue::List(_)) {
        let mut workflow = blank(WorkflowMode::Sequence);
        reader.chain(root, CommandContext::NOTHING, &mut workflow, StepPhase::Sequence);
        return Some(workflow);
    }
    let fields = reader.top_fields(root)?;
    let mode = reader.mode(&fields)?;
    let mut workflow = reader.settings_of_any_mode(&fields, mode);
    let (layers, rule) = reader.failure_settings(&fields, workflow.deadline);
    workflow.tolerance = rule.tolerance();
    let of_workflow = layers.iter().find(|layer| layer.place == SettingPlace::Workflow);
    workflow.retry = of_workflow.map(|layer| layer.config.clone());
    match mode {
        WorkflowMode::Sequence => {
            let around = CommandContext { layers: &layers, shared: Some(&OnceCell::new()), timeout: None };
            if let Some(node) = fields.get("commands") {
                reader.chain(node, around, &mut workflow, StepPhase::Sequence);
            } else {
                reader.missing(&fields, "commands", MappingTable::Workflow);
            }
        }
        WorkflowMode::MapReduce => reader.map_reduce(&fields, &mut workflow, &layers, &rule),
        WorkflowMode::Flow => reader.flow(&fields, &mut workflow),
    }
    Some(workflow)
}

/// A workflow without steps, with every setting at its default.
pub(super) fn blank(mode: WorkflowMode) -> Workflow {
    let claude = ["claude", "--print", "{prompt}"].map(str::to_owned);
    Workflow {
        name: None,
        mode,
        steps: Vec::new(),
        flow: None,
        shell: "/bin/sh".to_owned(),
        agents: BTreeMap::from([("claude".to_owned(), claude.to_vec())]),
        env: Vec::new(),
        secrets: Vec::new(),
        pool: None,
        tolerance: undaunted_policy::Tolerance::default(),
        retry: None,
        deadline: None,
    }
}

impl WorkflowReader<'_> {
    /// Steps of one command each, one after the other.
    fn chain(
        &mut self,
        node: &YamlNode<'_>,
        around: CommandContext<'_>,
        workflow: &mut Workflow,
        phase: StepPhase,
    ) {
        self.each_command(node, around, |command| {
            let before = workflow.steps.len().checked_sub(1);
            workflow.steps.push(Step {
                name: command.id.clone(),
                phase,
                needs: before.into_iter().collect(),
                work: StepWork::One,
                commands: vec![command],
            });
        });
    }

    /// Also collects the names of agents, which are keys of commands.
    fn top_fields<'n>(&mut self, root: &'n YamlNode<'n>) -> Option<MappingFields<'n>> {
        let fields = self.fields(root, MappingTable::Workflow)?;
        if let Some(node) = fields.get("agents")
            && let YamlValue::Map(entries) = &node.value
        {
            self.agents.extend(entries.iter().map(|entry| entry.key.to_string()));
        }
        Some(fields)
    }

    fn mode(&mut self, fields: &MappingFields<'_>) -> Option<WorkflowMode> {
        let mode = match fields.get("mode") {
            Some(node) => match self.variant(node, WorkflowMode::ALL, WorkflowMode::word) {
                Some(mode) => mode,
                // The other keys show which mode is intended.
                None if fields.get("map").is_some() => WorkflowMode::MapReduce,
                None if fields.get("steps").is_some() => WorkflowMode::Flow,
                None if fields.get("commands").is_some() => WorkflowMode::Sequence,
                None => return None,
            },
            None => match ["map", "steps"].map(|key| fields.get(key).is_some()) {
                [true, _] => self.without_mode(fields, "map", WorkflowMode::MapReduce),
                [_, true] => self.without_mode(fields, "steps", WorkflowMode::Flow),
                _ => WorkflowMode::Sequence,
            },
        };
        if mode == WorkflowMode::Sequence {
            self.no_tolerance(fields);
        }
        for entry in fields.entries.iter().filter(|entry| keys_of_other_modes(mode).contains(&&*entry.key)) {
            // Without a mode the missing mode is the problem, not the keys of that mode.
            if fields.get("mode").is_some() || mode != WorkflowMode::Sequence {
                let message = format!("`{}` is not allowed in `mode: {}`", entry.key, mode.word());
                self.problem(DiagnosticCode::UnknownKey, entry.key_span, message);
            } else {
                let message = format!("`{}` needs a `mode`", entry.key);
                let help = "add `mode: mapreduce` or `mode: flow`";
                self.problem_with_help(DiagnosticCode::MissingKey, entry.key_span, message, help);
            }
        }
        Some(mode)
    }

    /// A list of commands ends with the first that fails, so it has no tolerance.
    fn no_tolerance(&mut self, fields: &MappingFields<'_>) {
        let inner = match fields.get("error_policy").map(|node| &node.value) {
            Some(YamlValue::Map(entries)) => entries.as_slice(),
            _ => &[],
        };
        for entry in fields.entries.iter().chain(inner) {
            if TOLERANCE_KEYS.contains(&&*entry.key) {
                let message = format!("`{}` has no effect on a list of commands", entry.key);
                self.problem(DiagnosticCode::NoEffect, entry.key_span, message);
            }
        }
    }

    fn without_mode(&mut self, fields: &MappingFields<'_>, key: &str, mode: WorkflowMode) -> WorkflowMode {
        let word = mode.word();
        let message = format!("`{key}` needs `mode: {word}`");
        let help = format!("add `mode: {word}` above it");
        self.problem_with_help(DiagnosticCode::MissingKey, fields.key_span(key), message, help);
        mode
    }

    fn settings_of_any_mode(&mut self, fields: &MappingFields<'_>, mode: WorkflowMode) -> Workflow {
        let mut workflow = blank(mode);
        let name = fields.read("name", |node| self.text(node));
        workflow.name = name.map(str::to_owned);
        self.name.clone_from(&workflow.name);
        if let Some(node) = fields.get("shell")
            && let Some(shell) = self.text(node)
        {
            if !shell.starts_with('/') {
                let message = format!("`{shell}` is not an absolute path");
                self.wrong(node.span, message, "write the path of a shell, such as `/bin/bash`");
            }
            shell.clone_into(&mut workflow.shell);
        }
        if let Some(node) = fields.get("agents") {
            self.agents(node, &mut workflow);
        }
        if let Some(node) = fields.get("env") {
            workflow.env = self.texts(node, "an environment variable");
        }
        if let Some(node) = fields.get("secrets") {
            workflow.secrets = self.secrets(node);
            for entry in self.map(node).unwrap_or_default() {
                if workflow.env.iter().any(|(name, _)| *name == entry.key) {
                    let message = format!("`{}` is in both `env` and `secrets`", entry.key);
                    self.problem(DiagnosticCode::Conflict, entry.key_span, message);
                }
            }
        }
        workflow.deadline = fields.read("deadline", |node| self.time_limit(node));
        workflow.pool = self.pool(fields);
        workflow
    }

    fn agents(&mut self, node: &YamlNode<'_>, workflow: &mut Workflow) {
        for entry in self.map(node).unwrap_or_default() {
            if keys_of_commands().contains(&&*entry.key) {
                let message =
                    format!("`{}` is a key of commands and cannot be the name of an agent", entry.key);
                self.problem(DiagnosticCode::WrongValue, entry.key_span, message);
            }
            // Ids of commands and items contain it, and users type them.
            let _ = self.is_name(&entry.key, entry.key_span);
            let nodes = self.list(&entry.node).unwrap_or_default();
            let arguments = nodes.iter().filter_map(|node| self.text(node)).map(str::to_owned);
            let arguments: Vec<_> = arguments.collect();
            if !arguments.iter().any(|word| word.contains("{prompt}")) {
                let message = format!("the arguments of `{}` do not contain the prompt", entry.key);
                self.wrong(entry.node.span, message, "write `{prompt}` in one of the arguments");
            }
            workflow.agents.insert(entry.key.to_string(), arguments);
        }
    }

    fn secrets(&mut self, node: &YamlNode<'_>) -> Vec<(String, SecretSource)> {
        let mut secrets = Vec::new();
        for entry in self.map(node).unwrap_or_default() {
            self.check_name(entry, "an environment variable");
            let Some(fields) = self.fields(&entry.node, MappingTable::Secret) else {
                continue;
            };
            let mut read = |key| fields.read(key, |node| self.text(node));
            let secret = match (read("env"), read("file")) {
                (Some(env), None) => SecretSource::Env(env.to_owned()),
                (None, Some(file)) => SecretSource::File(file.to_owned()),
                (both, _) => {
                    let code =
                        if both.is_some() { DiagnosticCode::Conflict } else { DiagnosticCode::MissingKey };
                    let message = format!("the secret `{}` needs either `env` or `file`", entry.key);
                    self.problem(code, entry.key_span, message);
                    continue;
                }
            };
            secrets.push((entry.key.to_string(), secret));
        }
        secrets
    }

    fn pool(&mut self, fields: &MappingFields<'_>) -> Option<PoolRequest> {
        let total = fields.get("retry_budget");
        let per_item = fields.get("retry_budget_per_workflow");
        if total.is_none() && per_item.is_none() {
            return None;
        }
        if let Some(node) = total
            && let YamlValue::Text(text) = &node.value
        {
            let message = format!("`retry_budget` of a workflow is a number of retries, not `{text}`");
            self.wrong(node.span, message, "for a limit on delays, move it into `retry_config`");
            return None;
        }
        let mut read = |node: Option<&YamlNode<'_>>| node.and_then(|node| self.any_count(node)).unwrap_or(0);
        Some(PoolRequest {
            total: read(total),
            per_item: read(per_item),
            spans: ["retry_budget", "retry_budget_per_workflow"].map(|key| fields.key_span(key)),
        })
    }

    /// Retry settings of the whole workflow, the closest first, and its tolerance.
    fn failure_settings(
        &mut self,
        fields: &MappingFields<'_>,
        deadline: Option<Duration>,
    ) -> (Vec<SettingsLayer>, FailureRule) {
        let mut layers = Vec::new();
        let mut rule = self.failure_rule(fields);
        let errors = fields.get("error_policy");
        if let Some(errors) = errors.and_then(|node| self.fields(node, MappingTable::ErrorPolicy)) {
            if let Some(node) = errors.get("retry_config") {
                layers.extend(self.layer(node, SettingPlace::ErrorPolicy));
            }
            rule = self.failure_rule(&errors).over(&rule);
        }
        if let Some(node) = fields.get("retry_config") {
            layers.extend(self.layer(node, SettingPlace::Workflow));
        }
        layers.extend(deadline_layer(deadline, fields.key_span("deadline")));
        (layers, rule)
    }

    fn map_reduce(
        &mut self,
        fields: &MappingFields<'_>,
        workflow: &mut Workflow,
        outer: &[SettingsLayer],
        rule: &FailureRule,
    ) {
        let around = CommandContext { layers: outer, shared: Some(&OnceCell::new()), timeout: None };
        if let Some(node) = fields.get("setup").filter(|node| node.value != YamlValue::Null) {
            self.chain(node, around, workflow, StepPhase::Setup);
        }
        let Some(node) = self.needed(fields, "map", MappingTable::Workflow) else {
            return;
        };
        let outside = self.scope.clone();
        let _ = self.map_step(node, workflow, outer, rule);
        // Outputs captured for an item are not available after the map.
        let captured = &self.scope.captured_so_far;
        let ended = captured.difference(&outside.captured_so_far);
        self.scope = super::names::NameScope { map: true, ended: ended.cloned().collect(), ..outside };
        let reduce = fields.get("reduce");
        if let Some(node) = reduce.filter(|node| node.value != YamlValue::Null) {
            self.chain(node, around, workflow, StepPhase::Reduce);
        }
    }
}
