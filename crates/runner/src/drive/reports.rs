//! Results that come from outside, for attempts that others have taken on.

use undaunted_engine::input::AttemptEnd;
use undaunted_engine::task::{TokenOwner, find_token};
use undaunted_policy::Cause;

use super::message::{Report, Reported, When};
use super::running::Drive;
use crate::request::Arrived;

impl Drive<'_> {
    /// A result has come from outside. One that is known already changes nothing.
    pub(super) fn reported(&mut self, report: Report) {
        match self.arrived(report.arrived) {
            // Nothing can be recorded of an attempt that is not made yet. Whoever hears nothing sends it
            // again.
            TokenOwner::Waiting => {}
            TokenOwner::Nowhere => {
                // They may have gone.
                let _ = report.known.send(Reported::Unknown);
            }
            // Whoever sent it does so no more when they hear that it was taken.
            TokenOwner::Running(_) | TokenOwner::Over => {
                self.when_written(When::Tell(report.known));
            }
        }
    }

    /// The same, with nobody to be told. What it was for.
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
