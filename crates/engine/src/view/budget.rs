//! The retries of a job's pool, with the names of AD-44.

use std::collections::BTreeMap;

use serde::Serialize;

use super::context::ViewContext;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BudgetView {
    pub job_id: String,
    /// Null without a pool.
    pub total_budget: Option<u32>,
    pub per_workflow_max: Option<u32>,
    pub consumed: u32,
    /// By item: those that have used any.
    pub per_workflow_consumed: BTreeMap<String, u32>,
    /// What a top-up can raise the total to. Not in AD-44's shape, which is printed as it is.
    #[serde(skip)]
    pub maximum: u32,
}

/// What came of raising the pool of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TopUpView {
    pub job_id: String,
    pub asked: u32,
    pub added: u32,
    pub total_budget: u32,
}

/// The process that runs the job was asked to raise its pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TopUpRequestView {
    pub job_id: String,
    pub asked: u32,
    pub requested: bool,
    pub owner: u32,
}

impl BudgetView {
    /// The names of the items that were charged must be known to the job.
    pub fn of(context: &ViewContext<'_>) -> Self {
        let job = context.job;
        let mut named: BTreeMap<String, u32> = BTreeMap::new();
        for (item, units) in &context.projection.charged {
            let name = job.identity(*item).to_owned();
            // Items of different steps may have the same name.
            let all = named.entry(name).or_default();
            *all = all.saturating_add(*units);
        }
        Self {
            job_id: job.id().to_owned(),
            total_budget: job.pool.map(|pool| pool.limits.total),
            per_workflow_max: job.pool.map(|pool| pool.limits.per_item),
            consumed: job.pool.map_or(0, |pool| pool.consumed),
            per_workflow_consumed: named,
            maximum: job.ceilings().max_total,
        }
    }
}
