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
    #[error("step `{0}` is not registered")]
    UnknownStep(String),
    #[error("the flow requires `{}`, which neither a step nor `init` provides", .0.join("`, `"))]
    MissingInputs(Vec<String>),
    /// The steps form a cycle, or their definitions contradict each other.
    #[error("{0}")]
    Impossible(String),
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl FlowHost {
    /// Checks the definition of a step. Returns its id, or all errors in one line.
    pub fn check_step(&self, definition: &Value) -> Result<String, String> {
        let step = self.steps.check(definition)?;
        let id = &step.id;
        if !is_name(id) {
            return Err(format!(
                "`id`: `{id}` is not a valid name: use up to {LONGEST_NAME} letters, digits, `_`, `.`, `-` and `+`"
            ));
        }
        if let FlowStepKind::Call { endpoint, health_check, .. } = &step.checked.kind {
            let addresses = [Some(endpoint), health_check.as_ref()];
            for address in addresses.into_iter().flatten() {
                if !self.endpoints.allow(address) {
                    return Err(format!("`{address}` is not among the allowed endpoints"));
                }
            }
        }
        Ok(id.clone())
    }

    /// Assembles a flow from registered steps. Also returns the attributes that the flow requires and that
    /// neither a step nor `init` provides; the flow is planned as if they were provided.
    pub fn preview(&self, aim: &FlowGoals) -> Result<(PlannedFlow, Vec<String>), PlanError> {
        let steps = self.steps.all()?;
        let missing = choose(&steps, aim)?.missing;
        let mut aim = aim.clone();
        let lacking = missing.iter().map(|name| (name.clone(), Value::Null));
        aim.init.extend(lacking);
        let planned = self.assemble(&steps, &aim, &FlowSubmission::default())?;
        Ok((planned, missing.into_iter().collect()))
    }

    /// Assembles a flow from registered steps, with the settings of its submission.
    pub(super) fn plan(&self, aim: &FlowGoals, wanted: &FlowSubmission) -> Result<PlannedFlow, PlanError> {
        let steps = self.steps.all()?;
        let missing = choose(&steps, aim)?.missing;
        if !missing.is_empty() {
            return Err(PlanError::MissingInputs(missing.into_iter().collect()));
        }
        self.assemble(&steps, aim, wanted)
    }

    fn assemble(
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

    /// A step with the settings that the flow has for its `for_each` steps, unless the definition sets them
    /// itself. The result is a new definition, so it is checked.
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

/// The steps needed for the goals, and the attributes that nothing provides.
fn choose<'s>(steps: &'s Registered, aim: &FlowGoals) -> Result<StepSelection<'s>, PlanError> {
    if let Some(unknown) = aim.goals.iter().find(|goal| !steps.contains_key(*goal)) {
        return Err(PlanError::UnknownStep(unknown.clone()));
    }
    let parsed = steps.iter().map(|(id, step)| (id.as_str(), &*step.checked));
    let parsed: BTreeMap<&str, &FlowStep> = parsed.collect();
    Ok(select(&parsed, aim))
}
