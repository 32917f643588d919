//! Results of accepted attempts, delivered from outside.

use undaunted_engine::input::AttemptEnd;
use undaunted_engine::task::{TokenStatus, find_token};
use undaunted_policy::FailureCause;

use super::message::{AfterCommit, AttemptReport, DeliveryOutcome};
use super::running::JobDriver;
use crate::request::ArrivedResult;

impl JobDriver<'_> {
    /// Takes a result and answers its sender. A result that is known already changes nothing.
    pub(super) fn handle_report(&mut self, report: AttemptReport) {
        match self.handle_result(report.arrived) {
            // Nothing can be recorded for an attempt that has not started. Without an answer, the sender
            // sends the result again.
            TokenStatus::Waiting => {}
            TokenStatus::Unknown => {
                // The sender may no longer wait.
                let _ = report.reply.send(DeliveryOutcome::Unknown);
            }
            // Answered when the result is on disk, since the sender then stops sending it.
            TokenStatus::Running(_) | TokenStatus::Expired => {
                self.when_written(AfterCommit::Answer(report.reply));
            }
        }
    }

    /// Takes a result without answering. Returns the attempt it was for.
    pub(super) fn handle_result(&mut self, arrived: ArrivedResult) -> TokenStatus {
        let found = find_token(&self.job, &arrived.step, &arrived.token);
        if let TokenStatus::Running(start) = found {
            let (output, failure, error) = match arrived.result {
                Ok(output) => (Some(output), None, String::new()),
                Err(error) => (None, Some(FailureCause::Refused), error),
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
