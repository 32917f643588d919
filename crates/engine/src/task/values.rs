//! The values that the templates of an item can refer to.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};

use serde_json::{Value, json};

use super::identity::{correlation_id, receipt_token};
use crate::capture;
use crate::event::AttemptId;
use crate::id::StepId;
use crate::item_bytes::item_bytes;
use crate::job::{ItemScope, Job};
use crate::workflow::template::{Reference, Root, Segment, TemplateValues, TextTemplate, ValueError};

/// Values that a job refers to and does not hold itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct ValueFiles<'a> {
    /// The file that holds the item as JSON.
    pub item: &'a str,
    /// The results of the map, if they are small enough to be passed inline.
    pub results: Option<&'a Value>,
    pub results_file: &'a str,
    /// The base URL of webhooks.
    pub webhooks: &'a str,
    /// Name and value; HTTP requests may refer to them like to environment variables.
    pub secrets: &'a [(String, String)],
}

/// Resolves a path against a directory.
pub(super) fn within(directory: &str, path: Option<&str>) -> String {
    match path {
        None | Some("") => directory.to_owned(),
        Some(path) if path.starts_with('/') => path.to_owned(),
        Some(path) => format!("{}/{path}", directory.trim_end_matches('/')),
    }
}

pub(super) struct ItemValues<'a> {
    pub(super) job: &'a Job,
    pub(super) of: AttemptId,
    round: u32,
    pub(super) files: ValueFiles<'a>,
    value: OnceCell<Value>,
    item_file: OnceCell<()>,
    /// Declared variables that are being rendered.
    declaring: RefCell<Vec<String>>,
    secrets: bool,
}

impl<'a> ItemValues<'a> {
    pub(super) const fn new(job: &'a Job, of: AttemptId, round: u32, files: ValueFiles<'a>) -> Self {
        Self {
            job,
            of,
            round,
            files,
            value: OnceCell::new(),
            item_file: OnceCell::new(),
            declaring: RefCell::new(Vec::new()),
            secrets: false,
        }
    }

    /// For HTTP requests, which are sent and never stored.
    pub(super) const fn with_secrets(&self) -> Self {
        let mut values = Self::new(self.job, self.of, self.round, self.files);
        values.secrets = true;
        values
    }

    pub(super) fn receipt_token(&self) -> String {
        receipt_token(self.job, self.of.item(), self.of.command, self.round)
    }

    pub(super) fn correlation_id(&self) -> String {
        correlation_id(self.job, self.of.item())
    }

    pub(super) fn require_item_file(&self) {
        // A repeated `set` changes nothing.
        let _ = self.item_file.set(());
    }

    pub(super) fn needs_item_file(&self) -> bool {
        self.item_file.get().is_some()
    }

    pub(super) fn declared(&self) -> Result<Vec<(String, String)>, ValueError> {
        let declared = self.job.workflow().env.iter();
        declared.map(|(name, value)| Ok((name.clone(), self.declare(name, value)?))).collect()
    }

    fn declare(&self, name: &str, value: &TextTemplate) -> Result<String, ValueError> {
        self.declaring.borrow_mut().push(name.to_owned());
        let rendered = value.render(self);
        self.declaring.borrow_mut().pop();
        rendered
    }

    pub(super) fn item(&self) -> &Value {
        self.value.get_or_init(|| serde_json::from_str(self.job.value(self.of.item())).unwrap_or_default())
    }

    /// The bytes of an item of `map` that is not text. Items of workflow files are JSON, and stay what they are.
    pub(super) fn typed_bytes(&self) -> Option<Vec<u8>> {
        self.job.submitted().passing.and_then(|_| item_bytes(self.item()))
    }

    fn scopes(&self) -> impl Iterator<Item = &ItemScope> {
        let active = self.job.active(self.of.item());
        active.and_then(|active| active.scope.as_deref()).into_iter().chain([&self.job.scope])
    }

    fn step_value(&self, name: &str, reference: &Reference) -> Option<Value> {
        let plan = self.job.plan();
        let found = self.scopes().find_map(|scope| {
            let mut outputs = scope.outputs.iter();
            outputs.find(|(number, _)| plan.command(**number).is_some_and(|command| command.id == name))
        });
        let (_, (succeeded, output)) = found?;
        let status = if *succeeded { "succeeded" } else { "failed" };
        let output = match reference.path() {
            // A field of an output is a field of the JSON it holds.
            [_, _, ..] => serde_json::from_str(output).unwrap_or_default(),
            _ => Value::from(capture::without_line_end(output)),
        };
        let known = json!({ "output": output, "status": status });
        reference.follow(&known).cloned()
    }

    fn map_value(&self, reference: &Reference) -> Option<Value> {
        let mut maps = StepId::all().zip(&self.job.steps).filter(|(step, _)| self.job.plan().is_map(*step));
        let (_, state) = maps.next()?;
        if let Some(Segment::Field(field)) = reference.path().first()
            && field == "results"
        {
            let known = json!({ "results": self.files.results? });
            return reference.follow(&known).cloned();
        }
        let (succeeded, dead) = (state.succeeded, state.dead);
        let known = json!({
            "total": state.items.len(),
            "successful": succeeded,
            "failed": dead,
            "results_file": self.files.results_file,
        });
        reference.follow(&known).cloned()
    }

    fn variable(&self, reference: &Reference) -> Option<Value> {
        let [Segment::Field(name)] = reference.path() else { return None };
        let mut secrets = self.files.secrets.iter().filter(|_| self.secrets);
        if let Some((_, value)) = secrets.find(|(known, _)| known == name) {
            return Some(Value::from(value.as_str()));
        }
        let mut stored = self.job.submitted().env.iter().filter(|(known, _)| known == name);
        let stored = stored.next().map(|(_, value)| Value::from(value.as_str()));
        let mut declared = self.job.workflow().env.iter();
        let declared: Option<&TextTemplate> =
            declared.find_map(|(known, value)| (known == name).then_some(value));
        // A declared variable that refers to itself, directly or not, means the variable of that name in the
        // environment of the submission.
        let declared = declared.filter(|_| !self.declaring.borrow().contains(name));
        declared.and_then(|value| self.declare(name, value).ok()).map(Value::from).or(stored)
    }
}

impl TemplateValues for ItemValues<'_> {
    fn value(&self, reference: &Reference) -> Option<Cow<'_, Value>> {
        match reference.root() {
            Root::Item => reference.follow(self.item()).map(Cow::Borrowed),
            Root::ItemFile => {
                self.require_item_file();
                Some(Cow::Owned(self.files.item.into()))
            }
            Root::Map => self.map_value(reference).map(Cow::Owned),
            Root::Step(name) => self.step_value(name, reference).map(Cow::Owned),
            Root::Env => self.variable(reference).map(Cow::Owned),
            Root::Workflow => {
                let known = json!({ "name": self.job.workflow().name, "job": self.job.id() });
                reference.follow(&known).cloned().map(Cow::Owned)
            }
            Root::Captured(name) => {
                let value = self.scopes().find_map(|scope| scope.captured.get(name))?;
                reference.follow(value).cloned().map(Cow::Owned)
            }
        }
    }
}
