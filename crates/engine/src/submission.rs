//! From a checked workflow to the first event of a job.
//!
//! Everything that depends on when and where a job is submitted (the environment, the operator's settings) is
//! fixed here and stored with the submission, so that a later resume finds it unchanged.

use std::sync::Arc;

use crate::event::{CompletionDefaults, FlowRun, JobSubmitted, WorkflowText};
use crate::id::StepId;
use crate::plan::{Plan, environment_of};
use crate::workflow::{MaxParallel, Operator, PoolRequest, StepWork};

pub struct SubmissionContext<'a> {
    pub job: String,
    pub file: String,
    pub working_dir: String,
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
    #[error("`max_parallel` reads the environment variable {variable}, which is {found}")]
    Parallel { variable: String, found: String },
}

pub fn submission(
    plan: impl Into<Arc<Plan>>,
    text: &str,
    context: SubmissionContext<'_>,
) -> Result<JobSubmitted, SubmissionError> {
    let plan = plan.into();
    let workflow = plan.workflow();
    let mut parallel = Vec::new();
    for (step, found) in StepId::all().zip(&workflow.steps) {
        match &found.work {
            StepWork::Map(map) => parallel.push((step, max_parallel(&map.max_parallel, context.variable)?)),
            StepWork::Call(call) => parallel.push((step, call.parallelism)),
            StepWork::One => {}
        }
    }
    let ceilings = context.operator.ceilings;
    let declared = workflow.pool.or_else(|| context.operator.pool_for_all.then(PoolRequest::default));
    let pool = declared.map(|request| {
        let limits = request.limits(&ceilings);
        (limits.total, limits.per_item)
    });
    let names = environment_of(workflow).into_iter();
    let env = names.filter_map(|name| (context.variable)(&name).map(|value| (name, value))).collect();
    Ok(JobSubmitted {
        job: context.job,
        text: WorkflowText::checked(text, plan),
        file: context.file,
        working_dir: context.working_dir,
        env,
        seed: context.seed,
        parallel,
        pool,
        ceilings: Some((
            ceilings.default_total,
            ceilings.max_total,
            ceilings.default_per_item,
            ceilings.max_per_item,
        )),
        release: Some(context.release),
        completion: Some(CompletionDefaults {
            min: context.operator.completion.min,
            deadline: context.operator.completion.deadline,
        }),
        work: Some(context.operator.work),
        late_results_count: Some(context.operator.late_results_count),
        flow: context.flow,
        token_key: context.token_key,
        origin_breakers: Some(context.operator.breaker_per_origin),
        ..JobSubmitted::default()
    })
}

fn max_parallel(
    setting: &MaxParallel,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<u32, SubmissionError> {
    let name = match setting {
        MaxParallel::Number(number) => return Ok(*number),
        MaxParallel::Variable(name) => name,
    };
    let value = variable(name);
    let number = value.as_deref().and_then(|value| value.parse().ok());
    number.filter(|number| *number > 0).ok_or_else(|| SubmissionError::Parallel {
        variable: name.clone(),
        found: value
            .map_or_else(|| "not set".to_owned(), |value| format!("`{value}`, not a positive number")),
    })
}
