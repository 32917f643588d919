//! Steps that were registered, and flows put together from them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use undaunted_engine::flow::{Selection, select};
use undaunted_engine::workflow::{
    Aim, FlowStep, Source, StepKind, Workflow, check_aimed, check_step, plain_definition,
};

use super::host::Host;
use crate::complaint::complaint;
use crate::folder::{LONGEST_NAME, is_name};
use crate::journal::JournalError;
use crate::lock::locked;

/// Definitions that were read before, by the id of their step.
pub(super) type Registered = BTreeMap<String, (Arc<Definition>, Arc<FlowStep>)>;

/// The definition of a step.
#[derive(Debug)]
pub(super) struct Definition {
    /// As it was given.
    given: Arc<str>,
    /// As it is understood.
    plain: Value,
}

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
    /// It requires attributes that nobody gives.
    #[error("nobody gives what is required: `{}`", .0.join("`, `"))]
    MissingInputs(Vec<String>),
    /// Steps wait for each other, or what is said of it makes no sense.
    #[error("{0}")]
    Impossible(String),
    /// The store has failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl Host {
    /// The id of a step, by its definition; or what is wrong with it.
    ///
    /// # Errors
    ///
    /// Everything that is wrong, in words.
    pub fn check_step(&self, definition: &Value) -> Result<String, String> {
        let text = plain_definition(definition).to_string();
        let source = Source::new("step", text);
        let checked = check_step(&source, &self.operator);
        let (id, step) = checked.map_err(|found| complaint(&source, &found))?;
        if !is_name(&id) {
            return Err(format!(
                "`id`: `{id}` is not made of letters, digits and `_ . - +`, or has more than {LONGEST_NAME} signs"
            ));
        }
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
        Ok(id)
    }

    /// Puts a flow together from registered steps. With it come the attributes that it requires, and
    /// that neither a step gives nor it begins with: it is planned as if they were there.
    ///
    /// # Errors
    ///
    /// [`PlanError`]
    pub fn preview(&self, aim: &Aim) -> Result<(Planned, Vec<String>), PlanError> {
        let steps = self.steps()?;
        let missing = choose(&steps, aim)?.missing;
        let mut aim = aim.clone();
        let lacking = missing.iter().map(|name| (name.clone(), Value::Null));
        aim.init.extend(lacking);
        let planned = self.put_together(&steps, &aim, &[], &Map::new())?;
        Ok((planned, missing.into_iter().collect()))
    }

    /// Puts a flow together that is to be begun, with settings of its own and of its steps.
    pub(super) fn plan(
        &self,
        aim: &Aim,
        settings: &[(&str, Value)],
        of_steps: &Map<String, Value>,
    ) -> Result<Planned, PlanError> {
        let steps = self.steps()?;
        let missing = choose(&steps, aim)?.missing;
        if !missing.is_empty() {
            return Err(PlanError::MissingInputs(missing.into_iter().collect()));
        }
        self.put_together(&steps, aim, settings, of_steps)
    }

    fn put_together(
        &self,
        steps: &Registered,
        aim: &Aim,
        settings: &[(&str, Value)],
        of_steps: &Map<String, Value>,
    ) -> Result<Planned, PlanError> {
        let chosen = choose(steps, aim)?;
        let chosen: BTreeSet<&str> = chosen.steps.union(&chosen.inner).copied().collect();
        let chosen = chosen.into_iter().filter_map(|id| steps.get(id));
        let chosen = chosen.map(|(definition, step)| {
            let mut definition = definition.plain.clone();
            if let Value::Object(entries) = &mut definition
                && step.attributes.values().any(|taken| taken.for_each)
            {
                for (key, value) in of_steps {
                    entries.entry(key).or_insert_with(|| value.clone());
                }
            }
            definition
        });
        let mut workflow = json!({ "mode": "flow", "steps": chosen.collect::<Vec<_>>() });
        if let Value::Object(entries) = &mut workflow {
            let settings = settings.iter();
            entries.extend(settings.map(|(key, value)| ((*key).to_owned(), value.clone())));
        }
        let text = workflow.to_string();
        let source = Source::new("flow", text.clone());
        let checked = check_aimed(&source, &self.operator, Some(aim));
        match checked.workflow {
            Some(workflow) => Ok(Planned { text, workflow }),
            None => Err(PlanError::Impossible(complaint(
                &source,
                &checked.diagnostics,
            ))),
        }
    }

    /// The steps there are. What was read before is not read again.
    fn steps(&self) -> Result<Registered, PlanError> {
        let steps = self.book.read(|catalog| catalog.steps.clone())?;
        let mut known = locked(&self.registered);
        known.retain(|id, (definition, _)| steps.get(id) == Some(&definition.given));
        for (id, given) in &steps {
            if known.contains_key(id) {
                continue;
            }
            let plain = serde_json::from_str(given).unwrap_or_default();
            let plain = plain_definition(&plain);
            let source = Source::new("step", plain.to_string());
            // One that an earlier release took and this one does not is as good as none.
            if let Ok((_, step)) = check_step(&source, &self.operator) {
                let given = Arc::clone(given);
                let definition = Definition { given, plain };
                known.insert(id.clone(), (Arc::new(definition), Arc::new(step)));
            }
        }
        Ok(known.clone())
    }
}

/// The steps that may lead to the goals, and what they lack.
fn choose<'s>(steps: &'s Registered, aim: &Aim) -> Result<Selection<'s>, PlanError> {
    if let Some(unknown) = aim.goals.iter().find(|goal| !steps.contains_key(*goal)) {
        return Err(PlanError::UnknownStep(unknown.clone()));
    }
    let parsed = steps.iter().map(|(id, (_, step))| (id.as_str(), &**step));
    Ok(select(&parsed.collect(), aim))
}
