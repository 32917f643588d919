//! Delivering results to flows, in whichever process a flow runs.

use undaunted_engine::job::JobStage;
use undaunted_engine::task::{TokenStatus, find_token};
use undaunted_engine::workflow::WorkflowMode;
use undaunted_store::ClaimError;

use super::host::FlowHost;
use crate::drive::DeliveryOutcome;
use crate::failpoint;
use crate::journal::{self, ClaimedJob, JournalError};
use crate::request::{self, ArrivedResult};
use crate::secrets::Secrets;

impl FlowHost {
    /// Delivers a result to the process that runs the flow. None if it could not be recorded; then the sender
    /// should send it again.
    pub fn deliver(&self, flow: &str, arrived: &ArrivedResult) -> Option<DeliveryOutcome> {
        let taken = match self.event_loop.deliver(flow, arrived.clone()) {
            Some(DeliveryOutcome::Elsewhere) => self.deliver_elsewhere(flow, arrived),
            other => other,
        };
        failpoint::pass("result-taken");
        taken
    }

    fn deliver_elsewhere(&self, flow: &str, arrived: &ArrivedResult) -> Option<DeliveryOutcome> {
        let job = match journal::load(&*self.store, flow, &self.plans) {
            Ok(job) if job.workflow().mode == WorkflowMode::Flow => job,
            Ok(_) | Err(JournalError::NotFound { .. }) => return Some(DeliveryOutcome::Unknown),
            Err(_) => return None,
        };
        match find_token(&job, &arrived.step, &arrived.token) {
            TokenStatus::Unknown => Some(DeliveryOutcome::Unknown),
            TokenStatus::Expired => Some(DeliveryOutcome::Taken),
            // Nothing can be recorded for an attempt that has not started.
            TokenStatus::Waiting => None,
            TokenStatus::Running(_) if job.stage == JobStage::Suspended => {
                self.leave_for_owner(flow, arrived)
            }
            TokenStatus::Running(_) => match journal::claim(&*self.store, flow, &self.plans) {
                Ok(claimed) => self.resume_and_deliver(claimed, arrived),
                Err(JournalError::Claim(ClaimError::OwnedBy { .. })) => self.leave_for_owner(flow, arrived),
                Err(_) => None,
            },
        }
    }

    /// Stores the result for the process that runs the flow, or resumes it later.
    fn leave_for_owner(&self, flow: &str, arrived: &ArrivedResult) -> Option<DeliveryOutcome> {
        request::store_result(&*self.store, flow, arrived).ok()?;
        failpoint::pass("result-handed-on");
        Some(DeliveryOutcome::Taken)
    }

    /// Resumes a flow whose owner has died.
    fn resume_and_deliver(&self, claimed: ClaimedJob, arrived: &ArrivedResult) -> Option<DeliveryOutcome> {
        let secrets = Secrets::of_job(&claimed.job).ok().filter(|_| !self.is_leaving());
        let Some(secrets) = secrets else {
            self.store.unclaim_in_background(&claimed.claim);
            return None;
        };
        let flow = claimed.job.id().to_owned();
        self.run_here(claimed, secrets);
        self.event_loop.deliver(&flow, arrived.clone())
    }
}
