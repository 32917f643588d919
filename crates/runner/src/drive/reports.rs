//! Results from outside, for attempts that the other side has accepted.

use undaunted_engine::input::AttemptEnd;
use undaunted_engine::task::{TokenOwner, find_token};
use undaunted_policy::Cause;

use super::message::{Report, Reported, When};
use super::running::Drive;
use crate::request::Arrived;

impl Drive<'_> {
    /// Takes a result and answers its sender. A result that is known already changes nothing.
    pub(super) fn reported(&mut self, report: Report) {
        match self.arrived(report.arrived) {
            // Nothing can be recorded for an attempt that has not started. A sender without an answer
            // sends it again.
            TokenOwner::Waiting => {}
            TokenOwner::Nowhere => {
                // The sender may have gone.
                let _ = report.known.send(Reported::Unknown);
            }
            // Answered when it is on the disk: then the sender stops sending it.
            TokenOwner::Running(_) | TokenOwner::Over => {
                self.when_written(When::Tell(report.known));
            }
        }
    }

    /// Takes a result without answering. Returns the attempt it was for.
    pub(super) fn arrived(&mut self, arrived: Arrived) -> TokenOwner {
        let found = find_token(&self.job, &arrived.step, &arrived.token);
        if let TokenOwner::Running(start) = found {
            let (output, failure, error) = match arrived.result {
                Ok(output) => (Some(output), None, String::new()),
                Err(error) => (None, Some(Cause::Refused), error),
            };
            self.attempt_ended(AttemptEnd {
                start,
                output: output.map(|output| self.context.secrets.redact(output, false)),
                failure,
                error: self.context.secrets.redact(error, false),
                ..AttemptEnd::default()
            });
        }
        found
    }
}
