//! From a checked workflow to a job.
//!
//! What depends on the place and time of the submission is settled here, and stored with it.

use std::sync::Arc;

use undaunted_policy::PoolLimits;

use crate::event::{CompletionDefaults, FlowRun, JobSubmitted, WorkflowText};
use crate::id::StepId;
use crate::plan::{Plan, environment_of};
use crate::workflow::{MaxParallel, Operator, StepWork};

pub struct SubmissionContext<'a> {
    pub job: String,
    pub file: String,
    /// Of its commands.
    pub working_dir: String,
    /// For jitter.
    pub seed: u64,
    pub operator: &'a Operator,
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    pub release: String,
    /// For a flow whose text has no goals.
    pub flow: Option<FlowRun>,
    /// Makes tokens impossible to guess.
    pub token_key: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubmissionError {
    #[error("`max_parallel` is the environment variable {variable}, which is {found}")]
    Parallel { variable: String, found: String },
}

pub fn submission(
    plan: impl Into<Arc<Plan>>,
    text: &str,
    around: SubmissionContext<'_>,
) -> Result<JobSubmitted, SubmissionError> {
    let plan = plan.into();
    let workflow = plan.workflow();
    let mut parallel = Vec::new();
    for (number, step) in StepId::all().zip(&workflow.steps) {
        match &step.work {
            StepWork::Map(map) => {
                parallel.push((number, width(&map.max_parallel, around.variable)?));
            }
            StepWork::Call(call) => parallel.push((number, call.parallelism)),
            StepWork::One => {}
        }
    }
    let ceilings = around.operator.ceilings;
    let asked = workflow.pool.map(|pool| (pool.total, pool.per_item));
    let asked = asked.or_else(|| around.operator.pool_for_all.then_some((0, 0)));
    let pool = asked.map(|(total, per_item)| {
        let limits = PoolLimits::effective(total, per_item, &ceilings);
        (limits.total, limits.per_item)
    });
    let names = environment_of(workflow).into_iter();
    let env = names.filter_map(|name| Some(((around.variable)(&name)?, name)));
    let env = env.map(|(value, name)| (name, value)).collect();
    Ok(JobSubmitted {
        job: around.job,
        text: WorkflowText::checked(text, plan),
        file: around.file,
        working_dir: around.working_dir,
        env,
        seed: around.seed,
        parallel,
        pool,
        ceilings: Some((
            ceilings.default_total,
            ceilings.max_total,
            ceilings.default_per_item,
            ceilings.max_per_item,
        )),
        release: Some(around.release),
        completion: Some(CompletionDefaults {
            min: around.operator.completion.min,
            deadline: around.operator.completion.deadline,
        }),
        work: Some(around.operator.work),
        late_results_count: Some(around.operator.late_results_count),
        flow: around.flow,
        token_key: around.token_key,
        origin_breakers: Some(around.operator.breaker_per_origin),
        ..JobSubmitted::default()
    })
}

fn width(wanted: &MaxParallel, variable: &dyn Fn(&str) -> Option<String>) -> Result<u32, SubmissionError> {
    let name = match wanted {
        MaxParallel::Number(number) => return Ok(*number),
        MaxParallel::Variable(name) => name,
    };
    let value = variable(name);
    let number = value.as_deref().and_then(|value| value.parse().ok());
    number.filter(|number| *number > 0).ok_or_else(|| SubmissionError::Parallel {
        variable: name.clone(),
        found: value.map_or_else(|| "not set".to_owned(), |value| format!("`{value}`, not a number from 1")),
    })
}
