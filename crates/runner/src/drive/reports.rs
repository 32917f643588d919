//! Results that come from outside, for attempts that others have taken on.

use undaunted_engine::event::Subject;
use undaunted_engine::input::AttemptEnd;
use undaunted_engine::job::Item;
use undaunted_engine::task::{as_uuid, receipt_token};
use undaunted_policy::Cause;

use super::error::DriveError;
use super::news::{Report, Reported, When};
use super::running::Drive;

/// What a token belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// An attempt that runs: the number of its start.
    Running(u64),
    /// An item that waits for its next attempt.
    Waiting,
    /// A round of an item that is over.
    Over,
    /// Nothing.
    Nowhere,
}

impl Drive<'_> {
    /// A result has come from outside. One that is known already changes nothing.
    pub(super) fn reported(&mut self, report: Report) -> Result<(), DriveError> {
        let found = self.attempt_of(&report.step, &report.token);
        if found == Found::Waiting {
            // Nothing can be recorded of an attempt that is not made yet. Whoever hears nothing sends it
            // again.
            return Ok(());
        }
        if let Found::Running(start) = found {
            let (output, failure, error) = match report.result {
                Ok(output) => (Some(output), None, String::new()),
                Err(error) => (None, Some(Cause::Refused), error),
            };
            self.attempt_ended(&AttemptEnd {
                start,
                output: output.map(|output| self.secrets.redact(output, false)),
                failure,
                error: self.secrets.redact(error, false),
                ..AttemptEnd::default()
            });
        }
        if found == Found::Nowhere {
            // They may have gone.
            let _ = report.known.send(Reported::Unknown);
            return Ok(());
        }
        // Whoever sent it does so no more when they hear that it was taken.
        self.when_written(When::Tell(report.known))
    }

    /// What has this token.
    fn attempt_of(&self, step: &str, token: &str) -> Found {
        let mut steps = (0_u32..).zip(&self.job.workflow().steps);
        let step = steps.find(|(_, found)| found.name == step);
        let found = step.and_then(|(step, _)| {
            let running = self.running_of(step, token).map(Found::Running);
            running.or_else(|| self.idle_of(step, token))
        });
        found.unwrap_or(Found::Nowhere)
    }

    /// The attempt of a step that runs with this token. Few do, however many items there are.
    fn running_of(&self, step: u32, token: &str) -> Option<u64> {
        let mut running = self.job.running.iter();
        let found = running.find(|&(_, &(of, item))| {
            let active = self.job.active(step, item);
            of == step && active.is_some_and(|it| self.is_token(token, step, item, it.round))
        });
        found.map(|(start, _)| *start)
    }

    /// What does not run and has this token, in any round of it.
    fn idle_of(&self, step: u32, token: &str) -> Option<Found> {
        // An item that is done does not say how often it was redriven before.
        const ROUNDS: u32 = 16;
        let state = self.job.step(step)?;
        state.items.iter().find_map(|(item, found)| {
            let dead = self.job.dead.get(&(step, item));
            let (rounds, current) = match found {
                Item::Active(active) => (active.round, Some(active.round)),
                Item::Pending => (state.again, None),
                Item::Settled(_) => (dead.map_or(ROUNDS, |dead| dead.round), None),
            };
            let mut rounds = 1..=rounds;
            let round = rounds.find(|round| self.is_token(token, step, item, *round))?;
            let waits = current == Some(round);
            Some(if waits { Found::Waiting } else { Found::Over })
        })
    }

    fn is_token(&self, token: &str, step: u32, item: u32, round: u32) -> bool {
        let command = self.job.plan().first(step);
        command.is_some_and(|command| {
            let of = Subject {
                step,
                item,
                command,
                attempt: 0,
            };
            as_uuid(&receipt_token(&self.job, of, round)) == token
        })
    }
}
