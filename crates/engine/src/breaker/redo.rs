//! Another job was faster: what could not be written is put together again.
//!
//! Results stand whatever became of their breaker; only what the breaker makes of them is found out
//! anew. A start that was let through by a breaker which has shut since is taken back, before anybody
//! acted upon it.

use std::sync::Arc;

use undaunted_policy::Admission;

use super::known::Told;
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
        for told in told {
            let at = match &told {
                Told::Started { at, .. } | Told::Ended { at, .. } => *at,
            };
            let told = match told {
                Told::Started { breaker, start, .. } => {
                    let Some(told) = self.start_again(&mut records, &breaker, start) else {
                        continue;
                    };
                    told
                }
                ended @ Told::Ended { .. } => ended,
            };
            if let Some(event) = self.tell_breaker(told) {
                records.push(Record { at, event });
            }
        }
        records
    }

    /// A start asks its breaker again; none if that does not let it through any more.
    fn start_again(
        &mut self,
        records: &mut [Record],
        breaker: &Arc<str>,
        number: u64,
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
                    ticket,
                    at: record.at,
                })
            }
            Admission::Held { .. } | Admission::Refused => {
                let of = self.withdraw(started, record.at);
                let held = self.hold(of, breaker, None, record.at);
                record.event = Event::Held(Box::new(held));
                self.apply(record);
                None
            }
        }
    }
}
