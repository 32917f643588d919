//! The steps of a flow.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use undaunted_policy::shape::WorkConfig;

use crate::workflow::diagnostic::{Code, Diagnostic};
use crate::workflow::keys::Table;
use crate::workflow::model::{
    Attribute, FlowStep, Origin, Phase, Place, Resolved, Role, Step, StepKind, Work, Workflow,
};
use crate::workflow::source::Span;
use crate::workflow::yaml::{Entry, Node, Value};

use super::layer::said;
use super::plan;
use super::reader::{Fields, Reader};

/// How long a call may take when nothing is said.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

impl Reader<'_> {
    pub(super) fn flow(&mut self, fields: &Fields<'_>, workflow: &mut Workflow) {
        let Some(steps) = fields.get("steps") else {
            self.missing(fields, "steps", Table::Workflow);
            return;
        };
        let mut spans: Vec<Span> = Vec::new();
        let mut seen: BTreeMap<String, Span> = BTreeMap::new();
        let nodes = self.list(steps).unwrap_or_default();
        for node in nodes {
            let Some((id, step)) = self.flow_step(node, workflow.deadline) else {
                continue;
            };
            if let Some(first) = seen.insert(id.clone(), node.span) {
                let message = format!("`{id}` is the id of two steps");
                let problem = Diagnostic::new(Code::DuplicateId, node.span, message);
                self.problems.push(problem.related(first, "the first one"));
                continue;
            }
            spans.push(node.span);
            workflow.steps.push(Step {
                name: id,
                phase: Phase::Flow,
                needs: Vec::new(),
                work: Work::Call(Box::new(step)),
                commands: Vec::new(),
            });
        }
        let Some(goals) = fields.get("goals") else {
            self.missing(fields, "goals", Table::Workflow);
            return;
        };
        if workflow.steps.len() < nodes.len() {
            // A plan without the steps that could not be read would miss what is there.
            return;
        }
        let goals_span = goals.span;
        if !matches!(goals.value, Value::List(_)) {
            self.expected(goals, "a list");
            return;
        }
        let goals = self.names_in(goals);
        let init = fields
            .get("init")
            .and_then(|node| self.map(node))
            .unwrap_or_default();
        let init: BTreeMap<_, _> = init
            .iter()
            .map(|entry| (entry.key.to_string(), entry.node.to_json()))
            .collect();
        match plan::plan(&workflow.steps, goals, init) {
            Ok((flow, needs)) => {
                for (step, needs) in workflow.steps.iter_mut().zip(needs) {
                    step.needs = needs;
                }
                workflow.flow = Some(flow);
            }
            Err(problem) => {
                let span = problem.step.and_then(|step| spans.get(step)).copied();
                let mut diagnostic =
                    Diagnostic::new(problem.code, span.unwrap_or(goals_span), problem.message);
                diagnostic.help = problem.help;
                self.problems.push(diagnostic);
            }
        }
    }

    fn names_in(&mut self, node: &Node<'_>) -> Vec<String> {
        let nodes = self.list(node).unwrap_or_default();
        nodes
            .iter()
            .filter_map(|node| self.text(node).map(str::to_owned))
            .collect()
    }

    fn flow_step(
        &mut self,
        node: &Node<'_>,
        deadline: Option<Duration>,
    ) -> Option<(String, FlowStep)> {
        let fields = self.fields(node, Table::FlowStep)?;
        let id = fields.get("id").and_then(|node| self.identifier(node));
        let name = fields
            .get("name")
            .and_then(|node| self.text(node))
            .map(str::to_owned);
        let predicate = fields
            .get("predicate")
            .and_then(|node| self.predicate(node));
        if let Some(node) = fields.get("memoizable")
            && self.flag(node) == Some(true)
        {
            let message = "`memoizable: true` is not supported";
            self.problem(Code::Unsupported, node.span, message);
        }
        let work = fields
            .get("work_config")
            .and_then(|node| self.work_config(node));
        let retry = self.step_retry(work, fields.key_span("work_config"), deadline);
        let labels = fields
            .get("labels")
            .and_then(|node| self.map(node))
            .unwrap_or_default();
        let labels = labels
            .iter()
            .map(|entry| (entry.key.to_string(), self.written(&entry.node).to_owned()))
            .collect();
        let attributes = fields
            .get("attributes")
            .and_then(|node| self.map(node))
            .unwrap_or_default();
        let attributes = attributes
            .iter()
            .filter_map(|entry| self.attribute(entry))
            .collect();
        let breaker = fields.get("breaker").and_then(|node| self.breaker(node));
        let (completion, on_complete) = self.completion(&fields);
        let kind = self.step_kind(&fields);
        let Some(id) = id else {
            if fields.get("id").is_none() {
                self.missing(&fields, "id", Table::FlowStep);
            }
            return None;
        };
        let step = FlowStep {
            name: name.unwrap_or_else(|| id.clone()),
            kind: kind?,
            predicate,
            retry,
            parallelism: work
                .and_then(|(work, _)| work.parallelism)
                .unwrap_or(1)
                .max(1),
            labels,
            attributes,
            breaker,
            completion,
            on_complete,
        };
        Some((id, step))
    }

    fn step_kind(&mut self, fields: &Fields<'_>) -> Option<StepKind> {
        let words = [
            ("sync", 's'),
            ("async", 'a'),
            ("script", 'x'),
            ("flow", 'f'),
        ];
        let Some(node) = fields.get("type") else {
            self.missing(fields, "type", Table::FlowStep);
            return None;
        };
        let kind = self.word(node, &words)?;
        if kind == 'x' {
            let message = "steps of type `script` are not supported";
            self.problem(Code::Unsupported, node.span, message);
            return None;
        }
        let needed = if kind == 'f' { "flow" } else { "http" };
        let Some(node) = fields.get(needed) else {
            self.missing(fields, needed, Table::FlowStep);
            return None;
        };
        if kind == 'f' {
            let fields = self.fields(node, Table::FlowGoals)?;
            let Some(goals) = fields.get("goals") else {
                self.missing(&fields, "goals", Table::FlowGoals);
                return None;
            };
            let goals = self.names_in(goals);
            return Some(StepKind::SubFlow { goals });
        }
        let fields = self.fields(node, Table::FlowHttp)?;
        let timeout = fields.get("timeout").and_then(|node| self.count(node));
        let health_check = fields.get("health_check").and_then(|node| {
            self.check_url(node);
            self.text(node).map(str::to_owned)
        });
        let Some(endpoint) = fields.get("endpoint") else {
            self.missing(&fields, "endpoint", Table::FlowHttp);
            return None;
        };
        self.check_url(endpoint);
        Some(StepKind::Call {
            endpoint: self.text(endpoint)?.to_owned(),
            health_check,
            timeout: timeout
                .filter(|millis| *millis > 0)
                .map_or(CALL_TIMEOUT, Duration::from_millis),
            later: kind == 'a',
        })
    }

    fn predicate(&mut self, node: &Node<'_>) -> Option<String> {
        let fields = self.fields(node, Table::Predicate)?;
        if let Some(node) = fields.get("language")
            && let Some(language) = self.text(node)
            && !language.eq_ignore_ascii_case("cel")
        {
            let message = format!("predicates in `{language}` are not supported");
            self.problem_with_help(Code::Unsupported, node.span, message, "write it in `cel`");
        }
        let Some(script) = fields.get("script") else {
            self.missing(&fields, "script", Table::Predicate);
            return None;
        };
        self.text(script).map(str::to_owned)
    }

    fn work_config(&mut self, node: &Node<'_>) -> Option<(WorkConfig, Span)> {
        self.fields(node, Table::WorkConfig)?;
        match WorkConfig::deserialize(node) {
            Ok(config) => Some((config, node.span)),
            Err(error) => {
                let span = error.span.unwrap_or(node.span);
                let problem = said(Code::WrongValue, span, &error.message);
                // An unknown key was noted with its own place already.
                if problem.code != Code::UnknownKey {
                    self.problems.push(problem);
                }
                None
            }
        }
    }

    fn step_retry(
        &mut self,
        work: Option<(WorkConfig, Span)>,
        key: Span,
        deadline: Option<Duration>,
    ) -> Resolved {
        let defaults = &self.operator.work;
        let (mut config, origin) = match work {
            None => (defaults.retry_config(), None),
            Some((work, span)) => match work.retry_config(defaults) {
                Ok(config) => (config, Some(Place::WorkConfig)),
                Err(error) => {
                    let span = self.source.find(span, error.field());
                    self.problems
                        .push(said(Code::WrongValue, span, &error.to_string()));
                    return Resolved::once();
                }
            },
        };
        if work.is_some_and(|(work, _)| work.max_retries.is_none()) {
            let message = "without `max_retries` this step is never retried";
            let help = "add `max_retries`, or leave `work_config` out for the engine's defaults";
            self.problem_with_help(Code::NoMaxRetries, key, message, help);
        }
        let given = config.given();
        let origins = given.into_iter().filter_map(|setting| {
            let place = origin?;
            Some((setting, Origin { place, span: key }))
        });
        let origins = origins.collect();
        if let Some(deadline) = deadline {
            config = config.deadline(deadline);
        }
        Resolved::new(config.build().unwrap_or_default(), origins)
    }

    fn attribute(&mut self, entry: &Entry<'_>) -> Option<(String, Attribute)> {
        let fields = self.fields(&entry.node, Table::Attribute)?;
        let roles = [
            ("required", Role::Required),
            ("optional", Role::Optional),
            ("const", Role::Const),
            ("output", Role::Output),
        ];
        let Some(role) = fields.get("role") else {
            self.missing(&fields, "role", Table::Attribute);
            return None;
        };
        let role = self.word(role, &roles)?;
        let kinds = [
            "string", "number", "boolean", "object", "array", "null", "any",
        ];
        let kinds = kinds.map(|kind| (kind, kind));
        let kind = fields.get("type").and_then(|node| self.word(node, &kinds));
        let default = fields.get("default").and_then(|node| self.default(node));
        let for_each = fields.get("for_each").and_then(|node| self.flag(node));
        let mapping = fields
            .get("mapping")
            .and_then(|node| self.fields(node, Table::Mapping));
        let mapping = mapping.and_then(|fields| fields.get("name"));
        let mapping = mapping.and_then(|node| self.text(node)).map(str::to_owned);
        if role == Role::Const && default.is_none() {
            let message = format!("the constant `{}` has no value", entry.key);
            let help = "give it as `default`";
            self.problem_with_help(Code::MissingKey, entry.key_span, message, help);
        }
        if for_each == Some(true) && role == Role::Output {
            let message = "`for_each` has no meaning for an output";
            self.problem(Code::WrongValue, fields.key_span("for_each"), message);
        }
        let attribute = Attribute {
            role,
            kind: kind.unwrap_or("any").to_owned(),
            default,
            for_each: for_each.unwrap_or_default(),
            mapping,
        };
        Some((entry.key.to_string(), attribute))
    }

    /// A default is JSON written as text.
    fn default(&mut self, node: &Node<'_>) -> Option<serde_json::Value> {
        let text = self.text(node)?;
        match serde_json::from_str(text) {
            Ok(value) => Some(value),
            Err(error) => {
                let message = format!("the default is not JSON: {error}");
                let help = format!("a text needs quotes of its own: '\"{text}\"'");
                self.problem_with_help(Code::WrongValue, node.span, message, help);
                None
            }
        }
    }
}
