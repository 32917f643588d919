//! Plans that many jobs share.
//!
//! A hundred thousand flows with the same steps and goals differ only in their initial attributes, so their
//! plan is computed once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::state::{JobError, stored_plan};
use crate::event::{FlowRun, JobSubmitted};
use crate::plan::Plan;

const MAX_PLANS: usize = 1024;

#[derive(Debug, Default)]
pub struct Plans {
    known: Mutex<BTreeMap<PlanKey, Arc<Plan>>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PlanKey {
    text: Arc<str>,
    /// Names a workflow without a name.
    file: String,
    goals: Vec<String>,
    init: Vec<String>,
    /// The operator's settings, encoded.
    settled: Vec<u8>,
}

impl Plans {
    /// The plan of another job with an equal submission, or the plan that was checked for this submission.
    /// Only a submission read from a journal is checked here.
    pub fn of(&self, submitted: &JobSubmitted) -> Result<Arc<Plan>, JobError> {
        self.get_or(submitted, || match submitted.text.plan() {
            Some(plan) => Ok(plan),
            None => stored_plan(submitted, &submitted.text),
        })
    }

    pub(crate) fn get_or<E>(
        &self,
        submitted: &JobSubmitted,
        make: impl FnOnce() -> Result<Arc<Plan>, E>,
    ) -> Result<Arc<Plan>, E> {
        let key = PlanKey::of(submitted);
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = known.get(&key) {
            return Ok(Arc::clone(plan));
        }
        drop(known);
        let plan = make()?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_PLANS {
            known.clear();
        }
        known.insert(key, Arc::clone(&plan));
        Ok(plan)
    }
}

impl PlanKey {
    fn of(submitted: &JobSubmitted) -> Self {
        let aim = submitted.flow.as_ref().map(FlowRun::aim).unwrap_or_default();
        let settled = JobSubmitted {
            ceilings: submitted.ceilings,
            completion: submitted.completion,
            work: submitted.work,
            origin_breakers: submitted.origin_breakers,
            ..JobSubmitted::default()
        };
        Self {
            text: submitted.text.shared(),
            file: submitted.file.clone(),
            goals: aim.goals,
            init: aim.init.into_keys().collect(),
            // Encoding to memory cannot fail.
            settled: minicbor::to_vec(settled).unwrap_or_default(),
        }
    }
}
