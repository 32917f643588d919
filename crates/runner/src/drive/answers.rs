//! What the store answers to one job: that a batch stands or does not, and what others ask of it.

use undaunted_engine::task::TokenOwner;
use undaunted_policy::mutant::{self, Mutant};
use undaunted_store::{AppendError, Request, Version};

use super::error::DriveError;
use super::running::Drive;
use crate::breakers;
use crate::request::Asked;

impl Drive<'_> {
    /// What became of the batch up to a version.
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

    /// Has a batch written again whose answer was lost.
    pub(super) fn hand_over_again(&mut self, order: u64) {
        let Some((append, reached, facts)) = self.journal.write_again(order) else {
            return;
        };
        let mut appends = vec![append];
        let cache = self.breakers.borrow();
        for name in facts {
            // If the journal of the breaker was found to have the facts, the batch stands.
            let sealed = cache.admission.sealed(name, self.job.id(), reached.0);
            let facts = sealed.and_then(|record| breakers::append(name, record).ok());
            appends.extend(facts);
        }
        drop(cache);
        self.submit(appends, reached);
    }

    /// Acts upon what others have asked of it in the store: all that is not taken yet.
    pub(super) fn hear_requests(&mut self, requests: Vec<Request>) {
        for request in self.journal.unheard(requests) {
            match Asked::read(&request.bytes) {
                Some(Asked::Request(asked)) => self.decide(&asked.input()),
                // Its sender was answered already. So it waits for the next attempt if there is none just
                // now.
                Some(Asked::Report(arrived)) => {
                    let waits = matches!(self.arrived(arrived), TokenOwner::Waiting);
                    if waits && !mutant::is(Mutant::TakenResultLost) {
                        continue;
                    }
                }
                None => {}
            }
            self.journal.take(request.id);
        }
    }
}
