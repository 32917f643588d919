//! Registered steps, and flows assembled from them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use undaunted_engine::flow::{StepSelection, select};
use undaunted_engine::workflow::{FlowGoals, FlowStep, FlowStepKind, PoolRequest, Workflow, assemble};

use super::begin::FlowSubmission;
use super::host::FlowHost;
use crate::catalog::RegisteredStep;
use crate::folder::{LONGEST_NAME, is_name};
use crate::journal::JournalError;

type Registered = BTreeMap<String, Arc<RegisteredStep>>;

#[derive(Debug)]
pub struct PlannedFlow {
    /// The text of its workflow, which holds the steps it may need.
    pub text: String,
    pub workflow: Workflow,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    #[error("there is no step `{0}`")]
    UnknownStep(String),
    #[error("nobody gives what is required: `{}`", .0.join("`, `"))]
    MissingInputs(Vec<String>),
    /// Steps wait for each other, or the definition makes no sense.
    #[error("{0}")]
    Impossible(String),
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl FlowHost {
    /// The id of a step, by its definition; or all errors in words.
    pub fn check_step(&self, definition: &Value) -> Result<String, String> {
        let step = self.steps.check(definition)?;
        let id = &step.id;
        if !is_name(id) {
            return Err(format!(
                "`id`: `{id}` is not made of letters, digits and `_ . - +`, or has more than {LONGEST_NAME} signs"
            ));
        }
        if let FlowStepKind::Call { endpoint, health_check, .. } = &step.checked.kind {
            let addresses = [Some(endpoint), health_check.as_ref()];
            for address in addresses.into_iter().flatten() {
                if !self.endpoints.allow(address) {
                    return Err(format!("`{address}` may not be called from here"));
                }
            }
        }
        Ok(id.clone())
    }

    /// Assembles a flow from registered steps. With it come the attributes that it requires and that
    /// neither a step nor its beginning gives: it is planned as if they were there.
    pub fn preview(&self, aim: &FlowGoals) -> Result<(PlannedFlow, Vec<String>), PlanError> {
        let steps = self.steps.all()?;
        let missing = choose(&steps, aim)?.missing;
        let mut aim = aim.clone();
        let lacking = missing.iter().map(|name| (name.clone(), Value::Null));
        aim.init.extend(lacking);
        let planned = self.put_together(&steps, &aim, &FlowSubmission::default())?;
        Ok((planned, missing.into_iter().collect()))
    }

    /// Assembles a flow that is to be begun, with settings of its own and for its steps.
    pub(super) fn plan(&self, aim: &FlowGoals, wanted: &FlowSubmission) -> Result<PlannedFlow, PlanError> {
        let steps = self.steps.all()?;
        let missing = choose(&steps, aim)?.missing;
        if !missing.is_empty() {
            return Err(PlanError::MissingInputs(missing.into_iter().collect()));
        }
        self.put_together(&steps, aim, wanted)
    }

    fn put_together(
        &self,
        steps: &Registered,
        aim: &FlowGoals,
        wanted: &FlowSubmission,
    ) -> Result<PlannedFlow, PlanError> {
        let chosen = choose(steps, aim)?;
        let chosen: BTreeSet<&str> = chosen.steps.union(&chosen.inner).copied().collect();
        let chosen = chosen.into_iter().filter_map(|id| steps.get(id));
        let chosen = chosen.map(|step| self.with_settings(step, &wanted.of_steps));
        let chosen: Vec<Arc<RegisteredStep>> = chosen.collect::<Result<_, _>>()?;
        let definitions: Vec<&Value> = chosen.iter().map(|step| &step.definition).collect();
        let mut text = json!({ "mode": "flow", "steps": definitions });
        let budgets = [wanted.retry_budget, wanted.retry_budget_per_workflow];
        if let Value::Object(entries) = &mut text {
            let keys = ["retry_budget", "retry_budget_per_workflow"];
            for (key, number) in keys.into_iter().zip(budgets) {
                entries.extend(number.map(|number| (key.to_owned(), number.into())));
            }
        }
        let [total, per_item] = budgets.map(Option::unwrap_or_default);
        let asked = budgets.iter().any(Option::is_some);
        let pool = asked.then(|| PoolRequest { total, per_item, ..PoolRequest::default() });
        let checked = chosen.iter().map(|step| (step.id.clone(), Arc::clone(&step.checked)));
        match assemble(checked, pool, aim) {
            Ok(workflow) => Ok(PlannedFlow { text: text.to_string(), workflow }),
            Err(why) => Err(PlanError::Impossible(why.join("; "))),
        }
    }

    /// A step with the settings that its flow has for every step with an item for each element, unless
    /// its definition has them itself. That is another definition, so it is checked.
    fn with_settings(
        &self,
        step: &Arc<RegisteredStep>,
        settings: &Map<String, Value>,
    ) -> Result<Arc<RegisteredStep>, PlanError> {
        let mut attributes = step.checked.attributes.values();
        let mut unsaid = settings.clone();
        unsaid.retain(|key, _| step.definition.get(key).is_none());
        if unsaid.is_empty() || !attributes.any(|taken| taken.for_each) {
            return Ok(Arc::clone(step));
        }
        let mut definition = step.definition.clone();
        if let Value::Object(entries) = &mut definition {
            entries.extend(unsaid);
        }
        self.steps.check(&definition).map_err(PlanError::Impossible)
    }
}

/// The steps that may lead to the goals, and the attributes they lack.
fn choose<'s>(steps: &'s Registered, aim: &FlowGoals) -> Result<StepSelection<'s>, PlanError> {
    if let Some(unknown) = aim.goals.iter().find(|goal| !steps.contains_key(*goal)) {
        return Err(PlanError::UnknownStep(unknown.clone()));
    }
    let parsed = steps.iter().map(|(id, step)| (id.as_str(), &*step.checked));
    let parsed: BTreeMap<&str, &FlowStep> = parsed.collect();
    Ok(select(&parsed, aim))
}
