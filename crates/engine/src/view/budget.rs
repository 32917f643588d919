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
    /// By item, without those that have used none.
    pub per_workflow_consumed: BTreeMap<String, u32>,
    /// The highest total that a top-up can reach. Not in the JSON, which follows AD-44.
    #[serde(skip)]
    pub maximum: u32,
}

/// The result of a top-up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TopUpView {
    pub job_id: String,
    pub asked: u32,
    pub added: u32,
    pub total_budget: u32,
}

/// The process that runs the job was asked for a top-up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TopUpRequestView {
    pub job_id: String,
    pub asked: u32,
    pub requested: bool,
    pub owner: u32,
}

impl BudgetView {
    /// The job must know the names of the charged items.
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
