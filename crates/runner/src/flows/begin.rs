//! Registered steps, flows assembled from them, and beginning a flow on request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use undaunted_engine::event::{FlowRun, JobSubmitted};
use undaunted_engine::flow::{StepSelection, select};
use undaunted_engine::plan::Plan;
use undaunted_engine::submission::{SubmissionContext, SubmissionError, submission};
use undaunted_engine::task::endpoint_inputs;
use undaunted_engine::workflow::{FlowGoals, FlowStep, FlowStepKind, PoolRequest, Workflow, assemble};
use undaunted_store::{AppendError, ClaimError};

use super::FlowHost;
use crate::catalog::{RegisteredStep, activated};
use crate::folder::{LONGEST_NAME, is_name};
use crate::process::random_number;
use crate::{ClaimedJob, Clock, JournalError, Secrets, failpoint, journal};

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
        let step = self.steps.check_new(definition)?;
        let id = &step.id;
        if !is_name(id) {
            return Err(format!(
                "`id`: `{id}` is not a valid name: use up to {LONGEST_NAME} letters, digits, `_`, `.`, `-` and `+`"
            ));
        }
        if let FlowStepKind::Call { endpoint, health_check, .. } = &step.checked.kind {
            // The inputs of the endpoint are not known yet; every call checks its own address.
            let is_open = endpoint_inputs(endpoint).next().is_some();
            let may_call =
                if is_open { self.endpoints.may_allow(endpoint) } else { self.endpoints.allow(endpoint) };
            let health_check = health_check.as_ref().filter(|address| !self.endpoints.allow(address));
            if let Some(address) = Some(endpoint).filter(|_| !may_call).or(health_check) {
                return Err(format!("`{address}` is not among the allowed endpoints"));
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

#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowSubmission {
    pub id: String,
    pub goals: Vec<String>,
    pub init: Map<String, Value>,
    pub labels: BTreeMap<String, String>,
    /// Retries for the whole flow, if it has a pool; 0 is the operator's default.
    pub retry_budget: Option<u64>,
    /// Retries for any one item, if it has a pool.
    pub retry_budget_per_workflow: Option<u64>,
    /// The keys of the completion rule, for every `for_each` step that does not set them itself.
    pub of_steps: Map<String, Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BegunFlow {
    Now,
    /// The flow exists already, with the same goals and the same `init`.
    Before,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BeginError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error("flow `{0}` already exists with different goals or a different `init`")]
    Exists(String),
    #[error(transparent)]
    Unfit(#[from] SubmissionError),
    #[error("this process is shutting down; try again later")]
    Leaving,
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("cannot get random numbers from the operating system: {0}")]
    Random(String),
}

impl FlowHost {
    /// Begins a flow. It is on disk when this returns; on an error nothing was begun.
    pub fn start(&self, wanted: &FlowSubmission) -> Result<BegunFlow, BeginError> {
        if let Some(begun) = self.begun_before(wanted)? {
            return Ok(begun);
        }
        if self.is_leaving() {
            return Err(BeginError::Leaving);
        }
        let aim = FlowGoals { goals: wanted.goals.clone(), init: wanted.init.clone().into_iter().collect() };
        let planned = self.plan(&aim, wanted)?;
        let around = SubmissionContext {
            job: wanted.id.clone(),
            file: format!("flow {}", wanted.goals.join(", ")),
            working_dir: self.directory.clone(),
            seed: random()?,
            operator: &self.operator,
            variable: &|_| None,
            release: self.release.clone(),
            flow: Some(FlowRun {
                goals: aim.goals,
                init: Value::Object(wanted.init.clone()).to_string(),
                labels: wanted.labels.clone().into_iter().collect(),
                parent: None,
            }),
            token_key: Some(random()?),
        };
        let submitted = submission(Plan::new(planned.workflow), &planned.text, around)?;
        let Some(claimed) = self.submit(wanted, &submitted)? else {
            return Ok(BegunFlow::Before);
        };
        failpoint::pass("flow-written");
        if let Some(activated) = activated(&claimed.job) {
            // The flow is on disk. If this fails, the event loop that runs the flow notes it.
            drop(self.catalog.change(move |_| Ok::<_, ()>(vec![activated.clone()])));
        }
        self.run_here(claimed, Secrets::default());
        failpoint::pass("flow-begun");
        Ok(BegunFlow::Now)
    }

    /// Writes the first record of a flow. None if another caller has just begun the same flow.
    fn submit(
        &self,
        wanted: &FlowSubmission,
        submitted: &JobSubmitted,
    ) -> Result<Option<ClaimedJob>, BeginError> {
        /// How long the first claimant of the name has to write the flow.
        const PATIENCE: Duration = Duration::from_secs(5);
        const PAUSE: Duration = Duration::from_millis(5);
        let began = Instant::now();
        loop {
            let now = Clock::set().now();
            let submitted = submitted.clone();
            match journal::submit(&*self.store, submitted, &self.plans, now) {
                Err(
                    error @ (JournalError::Claim(ClaimError::OwnedBy { .. })
                    | JournalError::Append(AppendError::Conflict { .. })),
                ) => {
                    if self.begun_before(wanted)?.is_some() {
                        return Ok(None);
                    }
                    if began.elapsed() > PATIENCE {
                        return Err(error.into());
                    }
                    std::thread::sleep(PAUSE);
                }
                claimed => return Ok(Some(claimed?)),
            }
        }
    }

    /// Whether the same flow exists; an error if another flow has its name.
    fn begun_before(&self, wanted: &FlowSubmission) -> Result<Option<BegunFlow>, BeginError> {
        let job = match journal::load(&*self.store, &wanted.id, &self.plans) {
            Ok(job) => job,
            Err(JournalError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let run = job.submitted().flow.as_ref();
        let same = run.is_some_and(|run| {
            let init: Map<String, Value> = serde_json::from_str(&run.init).unwrap_or_default();
            run.parent.is_none() && run.goals == wanted.goals && init == wanted.init
        });
        if same { Ok(Some(BegunFlow::Before)) } else { Err(BeginError::Exists(wanted.id.clone())) }
    }
}

fn random() -> Result<u64, BeginError> {
    random_number().map_err(|error| BeginError::Random(error.to_string()))
}
