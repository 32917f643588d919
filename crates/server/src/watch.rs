//! Counts and logs what happens to running flows, and signals it to followers.

use std::sync::Arc;

use undaunted_engine::breaker::BreakerChange;
use undaunted_engine::event::{Event, JobEvent, Record};
use undaunted_engine::job::Job;
use undaunted_runner::drive::{Handle, Observer, StoreOutage};

use crate::log::Log;
use crate::metrics::Metrics;
use crate::news::News;

#[derive(Clone, Debug)]
pub struct Watch {
    pub metrics: Arc<Metrics>,
    pub log: Log,
    /// Signals that records were stored.
    pub news: News,
}

impl Observer for Watch {
    fn begins(&mut self, job: &Job, _: Handle) {
        self.metrics.restore(job);
        // The submission was recorded before this observer was attached.
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
