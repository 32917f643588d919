//! Plans that many jobs share.
//!
//! A hundred thousand flows with the same steps and goals differ in what they begin with; what their
//! text means is worked out once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::state::{JobError, stored_plan};
use crate::event::Submitted;
use crate::plan::Plan;

/// How many different ones are remembered.
const MOST: usize = 1024;

/// Plans by what they follow from.
#[derive(Debug, Default)]
pub struct Plans {
    known: Mutex<BTreeMap<Key, Arc<Plan>>>,
}

/// Everything of a submission that its plan depends on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    text: Arc<str>,
    /// A workflow without a name is called after it.
    file: String,
    goals: Vec<String>,
    init: Vec<String>,
    /// What the operator had settled, as it is stored.
    settled: Vec<u8>,
}

impl Plans {
    /// The plan of a submission: one that a job has already, or the one that was checked for it. Only a
    /// submission that was read from a journal is checked here.
    pub(super) fn of(&self, submitted: &Submitted) -> Result<Arc<Plan>, JobError> {
        let checked = || match submitted.text.plan() {
            Some(plan) => Ok(plan),
            None => stored_plan(submitted, &submitted.text),
        };
        self.get_or(submitted, checked)
    }

    /// The plan of a submission that a job has already, or this one.
    pub(crate) fn get_or<E>(
        &self,
        submitted: &Submitted,
        make: impl FnOnce() -> Result<Arc<Plan>, E>,
    ) -> Result<Arc<Plan>, E> {
        let key = Key::of(submitted);
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = known.get(&key) {
            return Ok(Arc::clone(plan));
        }
        drop(known);
        let plan = make()?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(key, Arc::clone(&plan));
        Ok(plan)
    }
}

impl Key {
    fn of(submitted: &Submitted) -> Self {
        let aim = submitted.flow.as_ref().map(crate::event::FlowRun::aim);
        let aim = aim.unwrap_or_default();
        let settled = Submitted {
            ceilings: submitted.ceilings,
            completion: submitted.completion,
            work: submitted.work,
            origin_breakers: submitted.origin_breakers,
            ..Submitted::default()
        };
        Self {
            text: submitted.text.shared(),
            file: submitted.file.clone(),
            goals: aim.goals,
            init: aim.init.into_keys().collect(),
            // What cannot be written down is the same as itself only.
            settled: minicbor::to_vec(settled).unwrap_or_default(),
        }
    }
}
