//! Results that arrive for one of many flows, whoever runs it.

use std::sync::mpsc::channel;
use std::time::Duration;

use undaunted_engine::task::{Found, find_token};
use undaunted_store::ClaimError;

use super::host::Host;
use super::recover::secrets;
use crate::drive::{Report, Reported};
use crate::journal::{self, Held, JournalError};
use crate::request::{self, Arrived};

/// How long a result waits for the loop to look at it.
const PATIENCE: Duration = Duration::from_secs(30);

impl Host {
    /// Hands a result to whoever runs the flow. Nothing if nobody could look at it: then it is to be
    /// sent again.
    #[must_use]
    pub fn deliver(&self, flow: &str, arrived: &Arrived) -> Option<Reported> {
        match self.report(flow, arrived) {
            Some(Reported::Elsewhere) => self.deliver_elsewhere(flow, arrived),
            other => other,
        }
    }

    fn report(&self, flow: &str, arrived: &Arrived) -> Option<Reported> {
        let (known, answer) = channel();
        let arrived = arrived.clone();
        self.hub.report(flow, Report { arrived, known });
        answer.recv_timeout(PATIENCE).ok()
    }

    fn deliver_elsewhere(&self, flow: &str, arrived: &Arrived) -> Option<Reported> {
        match journal::claim_sharing(&*self.store, flow, &self.plans) {
            Ok(held) if held.job.stage.has_ended() => {
                self.store.let_go(&held.claim);
                Some(known(&held, arrived))
            }
            Ok(held) => {
                let secrets = secrets(&held.job).ok()?;
                self.hub.add(held, secrets);
                self.report(flow, arrived)
            }
            Err(JournalError::NotFound { .. }) => Some(Reported::Unknown),
            Err(JournalError::Claim(ClaimError::OwnedBy { .. })) => {
                let read = journal::replay_sharing(&*self.store, flow, &self.plans, |_, _, _| {});
                match find_token(&read.ok()?.0, &arrived.step, &arrived.token) {
                    Found::Nowhere => Some(Reported::Unknown),
                    Found::Over => Some(Reported::Taken),
                    Found::Waiting => None,
                    Found::Running(_) => {
                        request::hand_on(&*self.store, flow, arrived).ok()?;
                        Some(Reported::Taken)
                    }
                }
            }
            Err(_) => None,
        }
    }
}

fn known(held: &Held, arrived: &Arrived) -> Reported {
    match find_token(&held.job, &arrived.step, &arrived.token) {
        Found::Nowhere => Reported::Unknown,
        _ => Reported::Taken,
    }
}
