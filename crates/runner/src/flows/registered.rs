//! Steps that were registered, and flows put together from them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use undaunted_engine::flow::select;
use undaunted_engine::workflow::{
    Aim, Diagnostic, FlowStep, Severity, Source, StepKind, Workflow, check_aimed, check_step,
    plain_definition,
};

use super::host::{Host, locked};
use crate::journal::JournalError;

/// Definitions that were read before, by the id of their step.
pub(super) type Registered = BTreeMap<String, (Arc<str>, Arc<FlowStep>)>;

/// A flow that was planned.
#[derive(Debug)]
pub struct Planned {
    /// The text of its workflow: the steps it may need.
    pub text: String,
    /// It, checked.
    pub workflow: Workflow,
}

/// Why a flow cannot be planned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// There is no such step.
    #[error("there is no step `{0}`")]
    UnknownStep(String),
    /// Something it needs is missing, or steps wait for each other.
    #[error("{0}")]
    Impossible(String),
    /// The store has failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl Host {
    /// The id and the definition of a step, as it is kept; or what is wrong with it.
    ///
    /// # Errors
    ///
    /// Everything that is wrong, in words.
    pub fn check_step(&self, definition: &Value) -> Result<(String, String), String> {
        let text = plain_definition(definition).to_string();
        let source = Source::new("step", text.clone());
        let (id, step) = check_step(&source, &self.operator).map_err(|found| said(&found))?;
        if let StepKind::Call {
            endpoint,
            health_check,
            ..
        } = &step.kind
        {
            let addresses = [Some(endpoint), health_check.as_ref()];
            for address in addresses.into_iter().flatten() {
                if !self.endpoints.allow(address) {
                    return Err(format!("`{address}` may not be called from here"));
                }
            }
        }
        Ok((id, text))
    }

    /// Puts a flow together from registered steps.
    ///
    /// # Errors
    ///
    /// [`PlanError`]
    pub fn plan(&self, aim: &Aim) -> Result<Planned, PlanError> {
        self.plan_with(aim, &[])
    }

    /// The same, with settings of the flow as a whole.
    pub(super) fn plan_with(
        &self,
        aim: &Aim,
        settings: &[(&str, Value)],
    ) -> Result<Planned, PlanError> {
        let steps = self.steps()?;
        for goal in &aim.goals {
            if !steps.contains_key(goal) {
                return Err(PlanError::UnknownStep(goal.clone()));
            }
        }
        let parsed = steps.iter().map(|(id, (_, step))| (id.as_str(), &**step));
        let chosen = select(&parsed.collect(), aim);
        let chosen = chosen.into_iter().filter_map(|id| steps.get(id));
        let chosen = chosen.map(|(text, _)| serde_json::from_str::<Value>(text));
        let chosen: Result<Vec<Value>, _> = chosen.collect();
        let chosen = chosen.map_err(|error| PlanError::Impossible(error.to_string()))?;
        let mut workflow = json!({ "mode": "flow", "steps": chosen });
        if let Value::Object(entries) = &mut workflow {
            entries.extend(
                settings
                    .iter()
                    .map(|(key, value)| ((*key).to_owned(), value.clone())),
            );
        }
        let text = workflow.to_string();
        let source = Source::new("flow", text.clone());
        let checked = check_aimed(&source, &self.operator, Some(aim));
        match checked.workflow {
            Some(workflow) => Ok(Planned { text, workflow }),
            None => Err(PlanError::Impossible(said(&checked.diagnostics))),
        }
    }

    /// The steps there are. What was read before is not read again.
    fn steps(&self) -> Result<Registered, PlanError> {
        let steps = self.book.read(|catalog| catalog.steps.clone())?;
        let mut known = locked(&self.registered);
        known.retain(|id, (text, _)| steps.get(id).is_some_and(|now| now == text));
        for (id, text) in &steps {
            if !known.contains_key(id) {
                let source = Source::new("step", text.to_string());
                // One that an earlier release took and this one does not is as good as none.
                if let Ok((_, step)) = check_step(&source, &self.operator) {
                    known.insert(id.clone(), (Arc::clone(text), Arc::new(step)));
                }
            }
        }
        Ok(known.clone())
    }
}

/// What is wrong, in one line.
fn said(found: &[Diagnostic]) -> String {
    let errors = found
        .iter()
        .filter(|found| found.code.severity() == Severity::Error);
    let errors = errors.map(|found| match &found.help {
        Some(help) => format!("{} ({help})", found.message),
        None => found.message.clone(),
    });
    let errors: Vec<String> = errors.collect();
    if errors.is_empty() {
        return "it says nothing".to_owned();
    }
    errors.join("; ")
}
