//! Beginning a flow on request.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use undaunted_engine::event::{FlowRun, JobSubmitted};
use undaunted_engine::plan::Plan;
use undaunted_engine::submission::{SubmissionContext, SubmissionError, submission};
use undaunted_engine::workflow::FlowGoals;
use undaunted_store::{AppendError, ClaimError};

use super::host::FlowHost;
use super::registered::PlanError;
use crate::catalog::activated;
use crate::clock::Clock;
use crate::failpoint;
use crate::journal::{self, ClaimedJob, JournalError};
use crate::process::random_number;
use crate::secrets::Secrets;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowSubmission {
    pub id: String,
    pub goals: Vec<String>,
    pub init: Map<String, Value>,
    pub labels: BTreeMap<String, String>,
    /// Retries for the whole flow, if it has a pool; 0 is the operator's default.
    pub retry_budget: Option<u32>,
    /// Retries for any one item, if it has a pool.
    pub retry_budget_per_workflow: Option<u32>,
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
