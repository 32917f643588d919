//! Reads the steps of a flow.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use undaunted_policy::spelling::{BackoffType, WorkConfig};

use crate::flow::Predicate;
use crate::task::{endpoint_inputs, input_in_host};
use crate::workflow::diagnostic::{Diagnostic, DiagnosticCode};
use crate::workflow::keys::{ATTRIBUTE_TYPES, MappingTable, STEP_METHODS, STEP_TYPES};
use crate::workflow::model::{
    Action, Attribute, AttributeRole, Command, Flow, FlowGoals, FlowStep, FlowStepKind, ResolvedRetry,
    SettingOrigin, SettingPlace, Step, StepCall, StepPhase, StepWork, Workflow,
};
use crate::workflow::source::Span;
use crate::workflow::yaml::{YamlEntry, YamlNode, YamlValue};

use super::layer::split_help;
use super::plan::plan_flow;
use super::reader::{MappingFields, WorkflowReader};

const CALL_TIMEOUT: Duration = Duration::from_secs(30);

fn command(id: &str, index: u64, step: &FlowStep) -> Command {
    let (action, timeout) = match &step.kind {
        FlowStepKind::Call { method, endpoint, timeout, later, .. } => {
            let call = StepCall { method: method.clone(), endpoint: endpoint.clone(), later: *later };
            (Action::Step(Box::new(call)), Some(*timeout))
        }
        FlowStepKind::SubFlow { goals } => (Action::SubFlow(goals.clone()), None),
    };
    let breaker = step.breaker.clone().map(Box::new);
    let retry = Arc::clone(&step.retry);
    Command { timeout, breaker, ..Command::new(id.to_owned(), index, action, retry, step.span) }
}

pub(super) fn flow_step(id: String, index: u64, step: Arc<FlowStep>) -> Step {
    Step {
        commands: vec![command(&id, index, &step)],
        name: id,
        phase: StepPhase::Flow,
        needs: Vec::new(),
        work: StepWork::Call(step),
    }
}

fn is_of(kind: &str, value: &Value) -> bool {
    let own = match value {
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "boolean",
        Value::Object(_) => "object",
        Value::Array(_) => "array",
        Value::Null => "null",
    };
    kind == "any" || kind == own
}

impl WorkflowReader<'_> {
    pub(super) fn flow(&mut self, fields: &MappingFields<'_>, workflow: &mut Workflow) {
        let Some(steps) = self.needed(fields, "steps", MappingTable::Workflow) else {
            return;
        };
        let deadline = workflow.deadline;
        let deadline = deadline.map(|limit| (limit, fields.key_span("deadline")));
        let spans = self.flow_steps(steps, deadline, &mut workflow.steps);
        // A plan without the steps that could not be read would miss what they give.
        let (Some((aim, goals_span)), Some(spans)) = (self.aim(fields), spans) else {
            return;
        };
        match plan_flow(&workflow.steps, aim) {
            Ok((flow, needs)) => {
                for (step, needs) in workflow.steps.iter_mut().zip(needs) {
                    step.needs = needs;
                }
                self.warn_of_excluded(&flow, &spans, &workflow.steps);
                workflow.flow = Some(flow);
            }
            Err(problems) => {
                for problem in problems {
                    let span = problem.step.and_then(|step| spans.get(step)).copied();
                    let span = span.unwrap_or(goals_span);
                    self.report(problem.code, span, problem.message, problem.help);
                }
            }
        }
    }

    fn warn_of_excluded(&mut self, flow: &Flow, spans: &[Span], steps: &[Step]) {
        for (step, missing) in &flow.excluded {
            let (Some(span), Some(step)) = (spans.get(*step), steps.get(*step)) else { continue };
            let missing = missing.join("`, `");
            let message =
                format!("step `{}` is never run: it needs `{missing}`, which cannot appear", step.name);
            let help = "another step sets what this one would; remove this one, or set its input in `init`";
            self.problem_with_help(DiagnosticCode::NoEffect, *span, message, help);
        }
    }

    /// The goals and initial attributes, from the caller or from the file, and their span.
    fn aim(&mut self, fields: &MappingFields<'_>) -> Option<(FlowGoals, Span)> {
        if let Some(aim) = self.aimed_at {
            return Some((aim.clone(), fields.span));
        }
        let node = self.needed(fields, "goals", MappingTable::Workflow)?;
        let YamlValue::List(_) = &node.value else {
            return self.expected(node, "a list");
        };
        let goals = self.names_in(node);
        let init = fields.read("init", |node| self.map(node)).unwrap_or_default().iter();
        let init = init.map(|entry| (entry.key.to_string(), entry.node.to_json()));
        let aim = FlowGoals { goals, init: init.collect() };
        Some((aim, node.span))
    }

    /// The span of each step, if all could be read.
    fn flow_steps(
        &mut self,
        node: &YamlNode<'_>,
        deadline: Option<(Duration, Span)>,
        steps: &mut Vec<Step>,
    ) -> Option<Vec<Span>> {
        let nodes = self.list(node)?;
        let mut spans: Vec<Span> = Vec::new();
        let mut seen: BTreeMap<String, Span> = BTreeMap::new();
        for node in nodes {
            let Some((id, step)) = self.flow_step(node, deadline) else {
                continue;
            };
            if let Some(first) = seen.insert(id.clone(), node.span) {
                let message = format!("two steps have the id `{id}`");
                let problem = Diagnostic::new(DiagnosticCode::DuplicateId, node.span, message);
                self.problems.push(problem.related(first, "first used here"));
                continue;
            }
            spans.push(node.span);
            let index = u64::try_from(steps.len()).unwrap_or(u64::MAX);
            steps.push(flow_step(id, index, Arc::new(step)));
        }
        (spans.len() == nodes.len()).then_some(spans)
    }

    fn names_in(&mut self, node: &YamlNode<'_>) -> Vec<String> {
        let names = self.list(node).unwrap_or_default().iter().filter_map(|node| self.text(node));
        names.map(str::to_owned).collect()
    }

    pub(crate) fn flow_step(
        &mut self,
        node: &YamlNode<'_>,
        deadline: Option<(Duration, Span)>,
    ) -> Option<(String, FlowStep)> {
        let fields = self.fields(node, MappingTable::FlowStep)?;
        let id = fields.read("id", |node| self.identifier(node));
        let name = fields.read("name", |node| self.text(node).filter(|name| self.is_said(node, name)));
        let predicate = fields.read("predicate", |node| self.predicate(node));
        if let Some(node) = fields.get("memoizable")
            && self.flag(node) == Some(true)
        {
            self.problem(DiagnosticCode::Unsupported, node.span, "`memoizable: true` is not supported");
        }
        let work = fields.read("work_config", |node| self.work_config(node));
        let retry = self.step_retry(&fields, work.as_ref(), deadline);
        let labels = fields.read("labels", |node| self.map(node)).into_iter().flatten();
        let labels =
            labels.map(|entry| (entry.key.to_string(), self.written(&entry.node).to_owned())).collect();
        let given = fields.read("attributes", |node| self.map(node)).into_iter().flatten();
        let attributes = given.filter_map(|entry| self.attribute(entry)).collect();
        let (completion, on_complete) = self.completion(&fields);
        let kind = self.step_kind(&fields, &attributes);
        let breaker = self.step_breaker(&fields, kind.as_ref());
        self.needed(&fields, "id", MappingTable::FlowStep)?;
        let id = id?;
        let step = FlowStep {
            name: name.unwrap_or(&id).to_owned(),
            kind: kind?,
            predicate,
            retry,
            parallelism: work.and_then(|work| work.parallelism).unwrap_or(1),
            span: fields.span,
            labels,
            attributes,
            breaker,
            completion,
            on_complete,
        };
        Some((id, step))
    }

    /// Whether a name is not empty; if it is, that is reported.
    fn is_said(&mut self, node: &YamlNode<'_>, name: &str) -> bool {
        let is_said = self.is_stored || !name.is_empty();
        if !is_said {
            self.problem(DiagnosticCode::WrongValue, node.span, "a name cannot be empty");
        }
        is_said
    }

    fn step_kind(
        &mut self,
        fields: &MappingFields<'_>,
        attributes: &BTreeMap<String, Attribute>,
    ) -> Option<FlowStepKind> {
        let node = self.needed(fields, "type", MappingTable::FlowStep)?;
        let kind = self.word(node, &STEP_TYPES.map(|kind| (kind, kind)))?;
        if kind == "script" {
            self.problem(DiagnosticCode::Unsupported, node.span, "steps of type `script` are not supported");
            return None;
        }
        let (needed, other) = if kind == "flow" { ("flow", "http") } else { ("http", "flow") };
        if fields.get(other).is_some() {
            let message = format!("`{other}` is not allowed in a step of this type");
            self.problem(DiagnosticCode::Conflict, fields.key_span(other), message);
        }
        let node = self.needed(fields, needed, MappingTable::FlowStep)?;
        if kind == "flow" {
            let fields = self.fields(node, MappingTable::FlowGoals)?;
            let goals = self.needed(&fields, "goals", MappingTable::FlowGoals)?;
            let goals = self.names_in(goals);
            return Some(FlowStepKind::SubFlow { goals });
        }
        self.flow_http(node, kind, attributes)
    }

    fn flow_http(
        &mut self,
        node: &YamlNode<'_>,
        kind: &str,
        attributes: &BTreeMap<String, Attribute>,
    ) -> Option<FlowStepKind> {
        let fields = self.fields(node, MappingTable::FlowHttp)?;
        let timeout = fields.read("timeout", |node| self.count(node)).filter(|millis| *millis > 0);
        let completion = fields.get("completion_timeout");
        let patience = completion.and_then(|node| self.at_least_one(node));
        if let Some(node) = completion.filter(|_| kind != "async") {
            let message = "`completion_timeout` has no effect on a `sync` step";
            self.problem(DiagnosticCode::NoEffect, node.span, message);
        }
        let health_check = fields.read("health_check", |node| {
            self.check_url(node, false);
            self.text(node).map(str::to_owned)
        });
        let methods = STEP_METHODS.map(|method| (method, method));
        let method = fields.get("method").map(|node| (node, self.word(node, &methods)));
        if let Some((node, Some("GET"))) = method.filter(|_| kind == "async") {
            let message = "an `async` step cannot be called by GET, which has no body for the `webhook_url`";
            self.wrong(node.span, message, "use POST");
        }
        let endpoint = self.needed(&fields, "endpoint", MappingTable::FlowHttp)?;
        self.check_url(endpoint, false);
        self.check_endpoint_inputs(endpoint, attributes);
        Some(FlowStepKind::Call {
            method: method.and_then(|(_, method)| method).unwrap_or("POST").to_owned(),
            endpoint: self.text(endpoint)?.to_owned(),
            health_check,
            timeout: timeout.map_or(CALL_TIMEOUT, Duration::from_millis),
            later: kind == "async",
            patience: patience.map(Duration::from_millis),
        })
    }

    /// A name in braces must be an input of the step, and cannot be part of the host.
    fn check_endpoint_inputs(&mut self, node: &YamlNode<'_>, attributes: &BTreeMap<String, Attribute>) {
        let YamlValue::Text(endpoint) = &node.value else { return };
        // Earlier releases did not fill in anything, and `${…}` was reported.
        if self.is_stored || endpoint.contains("${") {
            return;
        }
        if let Some(name) = input_in_host(endpoint) {
            let message = format!("`{{{name}}}` is part of the host");
            self.wrong(node.span, message, "use inputs only in the path and the query of an endpoint");
        }
        let inputs = attributes.iter().filter(|(_, attribute)| attribute.role != AttributeRole::Output);
        let inputs = inputs.map(|(name, attribute)| attribute.mapping.as_ref().unwrap_or(name).as_str());
        let inputs: BTreeSet<&str> = inputs.collect();
        for name in endpoint_inputs(endpoint).filter(|name| !inputs.contains(name)) {
            let message = format!("`{{{name}}}` in the endpoint is not an input of the step");
            let known = inputs.iter().copied().collect::<Vec<_>>().join(", ");
            let help =
                if known.is_empty() { "it has none".to_owned() } else { format!("its inputs are {known}") };
            self.wrong(node.span, message, help);
        }
    }

    fn predicate(&mut self, node: &YamlNode<'_>) -> Option<Predicate> {
        let fields = self.fields(node, MappingTable::Predicate)?;
        if let Some(node) = fields.get("language")
            && let Some(language) = self.text(node)
            && !language.eq_ignore_ascii_case("cel")
        {
            let message = format!("the language `{language}` is not supported");
            self.problem_with_help(
                DiagnosticCode::Unsupported,
                node.span,
                message,
                "write the predicate in `cel`",
            );
            return None;
        }
        let script = self.needed(&fields, "script", MappingTable::Predicate)?;
        let compiled = Predicate::compile(self.text(script)?);
        compiled.map_err(|why| self.problem(DiagnosticCode::WrongValue, script.span, why)).ok()
    }

    /// Every key is checked on its own, so that each wrong one is reported.
    fn work_config(&mut self, node: &YamlNode<'_>) -> Option<WorkConfig> {
        let fields = self.fields(node, MappingTable::WorkConfig)?;
        let before = self.problems.found.len();
        let mut number = |key| fields.read(key, |node| self.integer(node));
        let mut config = WorkConfig {
            max_retries: number("max_retries"),
            backoff: number("backoff"),
            max_backoff: number("max_backoff"),
            ..WorkConfig::default()
        };
        let words = [
            ("fixed", BackoffType::Fixed),
            ("linear", BackoffType::Linear),
            ("exponential", BackoffType::Exponential),
        ];
        config.backoff_type = fields.read("backoff_type", |node| self.word(node, &words));
        let parallelism = fields.read("parallelism", |node| self.at_least_one(node));
        config.parallelism = parallelism.map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        // Each number is checked alone first, and then all together.
        let [mut retries, mut first, mut cap] = [WorkConfig::default(); 3];
        retries.max_retries = config.max_retries;
        first.backoff = config.backoff;
        cap.max_backoff = config.max_backoff;
        let alone =
            [("max_retries", retries), ("backoff", first), ("max_backoff", cap), ("max_backoff", config)];
        for (key, part) in alone {
            if self.problems.found.len() > before && part == config {
                break;
            }
            if let Err(error) = part.retry_config(&self.operator.work) {
                let span = fields.get(key).map_or(node.span, |node| node.span);
                self.problems.push(split_help(DiagnosticCode::WrongValue, span, &error.to_string()));
            }
        }
        (self.problems.found.len() == before).then_some(config)
    }

    fn integer(&mut self, node: &YamlNode<'_>) -> Option<i64> {
        if let YamlValue::Integer(number) = node.value {
            return Some(number);
        }
        self.expected(node, "a whole number")
    }

    fn step_retry(
        &mut self,
        fields: &MappingFields<'_>,
        work: Option<&WorkConfig>,
        deadline: Option<(Duration, Span)>,
    ) -> Arc<ResolvedRetry> {
        let defaults = &self.operator.work;
        let config = match work {
            None => Ok(defaults.retry_config()),
            Some(work) => work.retry_config(defaults),
        };
        // The problem was reported when the block was read.
        let Ok(mut config) = config else {
            return Arc::clone(&self.once);
        };
        let settings = [
            ("max_retries", "attempts"),
            ("backoff", "initial_delay"),
            ("max_backoff", "max_delay"),
            ("backoff_type", "backoff"),
        ];
        let mut origins = BTreeMap::new();
        let place = SettingPlace::WorkConfig;
        if let Some(node) = fields.get("work_config").filter(|_| work.is_some())
            && let YamlValue::Map(entries) = &node.value
        {
            if !entries.iter().any(|entry| &*entry.key == "max_retries") {
                let key = fields.key_span("work_config");
                let message = "without `max_retries` this step is never retried";
                let help = "add `max_retries`, or remove `work_config` to use the engine's defaults";
                self.problem_with_help(DiagnosticCode::NoMaxRetries, key, message, help);
            }
            for entry in entries {
                let setting = settings.iter().find(|(key, _)| *key == entry.key);
                let origin = SettingOrigin { place, span: entry.key_span };
                origins.extend(setting.map(|(_, setting)| (*setting, origin)));
            }
        }
        if let Some((deadline, span)) = deadline {
            config = config.deadline(deadline);
            let place = SettingPlace::Deadline;
            origins.insert("deadline", SettingOrigin { place, span });
        }
        Arc::new(ResolvedRetry::new(config.build().unwrap_or_default(), origins))
    }

    fn attribute(&mut self, entry: &YamlEntry<'_>) -> Option<(String, Attribute)> {
        let fields = self.fields(&entry.node, MappingTable::Attribute)?;
        let role = self.needed(&fields, "role", MappingTable::Attribute)?;
        let role = self.variant(role, AttributeRole::ALL, AttributeRole::word)?;
        let kinds = ATTRIBUTE_TYPES.map(|kind| (kind, kind));
        let kind = fields.read("type", |node| self.word(node, &kinds));
        let default = fields.read("default", |node| self.default(node));
        if let (Some(kind), Some(value)) = (kind, &default)
            && !is_of(kind, value)
        {
            let at = fields.get("default").map_or(fields.span, |node| node.span);
            let message = format!("the default of `{}` does not have the type `{kind}`", entry.key);
            self.problem(DiagnosticCode::WrongValue, at, message);
        }
        let for_each = fields.read("for_each", |node| self.flag(node));
        let mapping = fields.read("mapping", |node| self.fields(node, MappingTable::Mapping));
        let mapping = mapping.and_then(|fields| {
            fields.read("name", |node| self.text(node).filter(|name| self.is_said(node, name)))
        });
        if role == AttributeRole::Const && default.is_none() {
            let message = format!("the constant `{}` has no value", entry.key);
            self.problem_with_help(
                DiagnosticCode::MissingKey,
                entry.key_span,
                message,
                "add it as `default`",
            );
        }
        if for_each == Some(true) && role == AttributeRole::Output {
            let message = "an output cannot have `for_each`";
            self.problem(DiagnosticCode::WrongValue, fields.key_span("for_each"), message);
        }
        if !self.is_stored {
            self.check_attribute(entry, &fields, role, kind);
        }
        let attribute = Attribute {
            role,
            kind: kind.unwrap_or("any").to_owned(),
            default,
            for_each: for_each.unwrap_or_default(),
            mapping: mapping.map(str::to_owned),
        };
        Some((entry.key.to_string(), attribute))
    }

    /// Rules that earlier releases did not have.
    fn check_attribute(
        &mut self,
        entry: &YamlEntry<'_>,
        fields: &MappingFields<'_>,
        role: AttributeRole,
        kind: Option<&str>,
    ) {
        let name = &entry.key;
        if name.is_empty() {
            self.problem(
                DiagnosticCode::WrongValue,
                entry.key_span,
                "the name of an attribute cannot be empty",
            );
        }
        let takes_default = matches!(role, AttributeRole::Optional | AttributeRole::Const);
        if fields.get("default").is_some() && !takes_default {
            let message = format!("`{name}` cannot have a default: its role is `{}`", role.word());
            self.wrong(fields.key_span("default"), message, "make it `optional`, or remove the default");
        }
        let is_each = matches!(fields.get("for_each").map(|node| &node.value), Some(YamlValue::Bool(true)));
        if let Some(kind) = kind.filter(|kind| is_each && !matches!(*kind, "array" | "any")) {
            let message = format!("`for_each` needs an array, and the type of `{name}` is `{kind}`");
            self.wrong(fields.key_span("for_each"), message, "make its type `array` or `any`");
        }
    }

    fn default(&mut self, node: &YamlNode<'_>) -> Option<Value> {
        let text = self.text(node)?;
        match serde_json::from_str(text) {
            Ok(value) => Some(value),
            Err(error) => {
                let message = format!("the default is not valid JSON: {error}");
                self.wrong(node.span, message, format!("put a string in quotes: '\"{text}\"'"));
                None
            }
        }
    }
}
