//! Whoever looks on at flows while they run: what happens is counted, logged, and passed on to those who
//! follow.

use std::sync::Arc;

use undaunted_engine::breaker::BreakerChange;
use undaunted_engine::event::{Event, JobEvent, Record};
use undaunted_engine::job::Job;
use undaunted_runner::drive::{Handle, Observer, StoreOutage};

use crate::log::Log;
use crate::metrics::Metrics;
use crate::news::News;

/// Looks on at flows.
#[derive(Clone, Debug)]
pub struct Watch {
    pub metrics: Arc<Metrics>,
    pub log: Log,
    /// The word that something was stored.
    pub news: News,
}

impl Observer for Watch {
    fn begins(&mut self, job: &Job, _: Handle) {
        self.metrics.restore(job);
        // That it was submitted was recorded before anybody looked on.
        if job.times.last_at == job.times.submitted_at {
            let submitted = Box::new(job.submitted().clone());
            let record = Record {
                at: job.times.submitted_at,
                event: Event::Job(JobEvent::Submitted(submitted)),
            };
            self.log.tell(job, &record);
        }
    }

    fn recorded(&mut self, job: &Job, _: u64, record: &Record) {
        self.metrics.observe(job, record);
        self.log.tell(job, record);
        self.news.stir();
    }

    fn outage(&mut self, outage: &StoreOutage<'_>) {
        self.log.outage(outage);
    }

    fn turned(&mut self, _: &Job, breaker: &str, change: &BreakerChange) {
        self.metrics
            .found_breaker(breaker, change.state.breaker.phase());
        self.log.turned(breaker, change);
        self.news.stir();
    }
}
