//! What the store reports to one job: the fate of its batches, and requests of other processes.

use undaunted_engine::mutant::{self, Mutant};
use undaunted_engine::task::TokenStatus;
use undaunted_store::{AppendError, StoreRequest, Version};

use super::error::DriveError;
use super::running::JobDriver;
use crate::breakers;
use crate::request::ReadRequest;

impl JobDriver<'_> {
    pub(super) fn answered(
        &mut self,
        reached: Version,
        result: Result<Vec<Version>, AppendError>,
    ) -> Result<(), DriveError> {
        for (batch, versions) in self.journal.answered(reached, result)? {
            self.stored(batch, &versions)?;
        }
        Ok(())
    }

    /// Submits a batch again whose answer was lost.
    pub(super) fn resubmit(&mut self, order: u64) {
        let Some((append, reached, facts)) = self.journal.resubmit(order) else {
            return;
        };
        let mut appends = vec![append];
        let cache = self.breakers.borrow();
        for name in facts {
            // None if the journal of the breaker was found to have the facts: then the batch stands.
            let sealed = cache.admission.sealed(name, self.job.id(), reached.0);
            let facts = sealed.and_then(|record| breakers::append(name, record).ok());
            appends.extend(facts);
        }
        drop(cache);
        self.submit(appends, reached);
    }

    pub(super) fn handle_requests(&mut self, requests: Vec<StoreRequest>) {
        for request in self.journal.unseen(requests) {
            match ReadRequest::read(&request.bytes) {
                Some(ReadRequest::Request(asked)) => self.decide(&asked.input()),
                // Its sender has been answered, so without a running attempt the result waits for one.
                Some(ReadRequest::Report(arrived)) => {
                    let waits = matches!(self.handle_result(arrived), TokenStatus::Waiting);
                    if waits && !mutant::is(Mutant::OfflineResultLost) {
                        continue;
                    }
                }
                None => {}
            }
            self.journal.take(request.id);
        }
    }
}
