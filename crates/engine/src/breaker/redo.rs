//! Another job was faster: what could not be written is put together again.
//!
//! Results stand whatever became of their breaker; only what the breaker makes of them is found out
//! anew. A start that was let through by a breaker which has shut since is taken back, before anybody
//! acted upon it.

use std::sync::Arc;

use undaunted_policy::Admission;
use undaunted_policy::mutant::{self, Mutant};

use super::known::Told;
use crate::decide::follow;
use crate::event::{Event, Pass, Record};
use crate::job::Job;

impl Job {
    /// Puts records together again that another job's change of a breaker kept from being written.
    /// They are the last ones of this job, and nobody has acted upon them; `told` is what led to the
    /// changes of breakers that went with them, and the breakers are known as they are now.
    #[must_use]
    pub fn redo(&mut self, mut records: Vec<Record>, told: Vec<Told>) -> Vec<Record> {
        records.retain(|record| {
            !matches!(
                record.event,
                Event::BreakerOpened(_)
                    | Event::BreakerHalfOpened { .. }
                    | Event::BreakerClosed { .. }
            )
        });
        // What is taken back is older than what came after it.
        let last = (self.last_at, self.run_until);
        for told in told {
            let told = match told {
                Told::Started {
                    breaker,
                    start,
                    is_first,
                    ..
                } => {
                    let again = self.start_again(&mut records, &breaker, start, is_first);
                    let Some(again) = again else {
                        continue;
                    };
                    again
                }
                ended @ Told::Ended { .. } => ended,
            };
            let place = records.iter().position(|record| led_to(record, &told));
            let at = told.at();
            if let (Some(place), Some(event)) = (place, self.tell_breaker(told)) {
                records.insert(place.saturating_add(1), Record { at, event });
            }
        }
        // A job that stops does not wait for what it holds since a start was taken back.
        if !mutant::is(Mutant::WithdrawalIgnored) {
            records.extend(follow(self, Vec::new(), last.0));
        }
        (self.last_at, self.run_until) = last;
        records
    }

    /// A start asks its breaker again; none if that does not let it through any more.
    fn start_again(
        &mut self,
        records: &mut [Record],
        breaker: &Arc<str>,
        number: u64,
        is_first: bool,
    ) -> Option<Told> {
        let record = records.iter_mut().find(|record| {
            matches!(&record.event, Event::AttemptStarted(started) if started.start == number)
        })?;
        let Event::AttemptStarted(started) = &mut record.event else {
            return None;
        };
        match self.breakers.admission(breaker, record.at) {
            Admission::Go(ticket) => {
                if let Some(pass) = &mut started.pass {
                    *pass = Pass {
                        breaker: pass.breaker.clone(),
                        generation: ticket.generation(),
                        probe: ticket.probe,
                    };
                }
                self.passes.insert(number, (Arc::clone(breaker), ticket));
                Some(Told::Started {
                    breaker: Arc::clone(breaker),
                    start: number,
                    of: started.subject,
                    ticket,
                    is_first,
                    at: record.at,
                })
            }
            Admission::Held { .. } | Admission::Refused => {
                let of = self.withdraw(started, is_first);
                let held = self.hold(of, breaker, None, record.at);
                record.event = Event::Held(Box::new(held));
                self.apply(record);
                None
            }
        }
    }
}

/// Whether a record is what a breaker was told of.
fn led_to(record: &Record, told: &Told) -> bool {
    match (&record.event, told) {
        (Event::AttemptStarted(started), Told::Started { start, .. }) => started.start == *start,
        (Event::AttemptAccepted { subject, .. }, Told::Ended { of, .. }) => subject == of,
        (Event::AttemptSucceeded(done), Told::Ended { of, .. }) => done.subject == *of,
        (Event::AttemptFailed(failed), Told::Ended { of, .. }) => failed.subject == *of,
        _ => false,
    }
}
