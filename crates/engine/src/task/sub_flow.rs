//! An item whose work is a flow of its own.

use std::sync::Arc;

use undaunted_policy::Seed;

use super::call::parent_of;
use super::identity::as_uuid;
use super::values::ItemValues;
use crate::event::{FlowRun, JobSubmitted, ParentItem, WorkflowText};
use crate::fnv::Fnv1a;
use crate::job::{Job, JobError, Plans};
use crate::plan::Plan;
use crate::workflow::aim_at;

/// How deep flows may nest: without a limit, steps that start each other's flows would recurse for ever.
const MAX_DEPTH: u32 = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubFlow {
    /// The same for all attempts of a round, so that the flow exists only once.
    pub id: String,
    pub run: FlowRun,
}

pub(super) fn sub_flow(values: &ItemValues<'_>, goals: &[String]) -> SubFlow {
    let job = values.job;
    let token = as_uuid(&values.receipt_token());
    let step = job.plan().step(values.of.step).map(|step| step.name.clone()).unwrap_or_default();
    let depth = parent_of(job).map_or(0, |parent| parent.depth);
    SubFlow {
        id: format!("{}:{}:{token}", shorten_name(job.id()), shorten_name(&step)),
        run: FlowRun {
            goals: goals.to_vec(),
            init: values.item().to_string(),
            labels: Vec::new(),
            parent: Some(ParentItem {
                flow: job.id().to_owned(),
                step,
                token,
                depth: depth.saturating_add(1),
            }),
        },
    }
}

/// Replaces the end of a long name by a hash: names of nested flows and of files contain it.
pub fn shorten_name(name: &str) -> String {
    const MAX_BYTES: usize = 100;
    const KEPT: usize = 60;
    if name.len() <= MAX_BYTES {
        return name.to_owned();
    }
    let hash = Fnv1a::of(name.bytes());
    let end = name.floor_char_boundary(KEPT);
    format!("{}~{hash:016x}", name.get(..end).unwrap_or_default())
}

impl SubFlow {
    pub fn is_too_deep(&self) -> bool {
        let parent = self.run.parent.as_ref();
        parent.is_some_and(|parent| parent.depth > MAX_DEPTH)
    }

    /// Plans the steps of the parent for the goals of this flow. Every other setting is the parent's.
    /// Fails if the goals cannot be reached.
    pub fn submission(&self, parent: &Job, plans: &Plans) -> Result<JobSubmitted, JobError> {
        let of = parent.submitted();
        let id = self.id.bytes();
        let seed = id.fold(of.seed, |seed, byte| Seed(seed).draws(byte.into(), 0, 0).at(1));
        let mut submitted =
            JobSubmitted { job: self.id.clone(), seed, flow: Some(self.run.clone()), ..of.clone() };
        let plan = plans.get_or(&submitted, || {
            let planned = aim_at(parent.workflow().clone(), &self.run.aim());
            let planned = planned.map(|workflow| Arc::new(Plan::new(workflow)));
            planned.map_err(|why| {
                let why = why.into_iter().next().map_or_else(String::new, |it| it.message);
                JobError::Workflow { why }
            })
        })?;
        submitted.text = WorkflowText::checked(of.text.shared(), plan);
        Ok(submitted)
    }
}
