//! Metrics for Prometheus.
//!
//! Fed with the records of jobs, one by one; what they count is decided in `undaunted_engine::view`. What a
//! job has used of its pool is read from its state, so that a resumed job counts what it used before. Series of
//! a job stay until it leaves the store. The library appends `_total` to the names of counters.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use undaunted_engine::catalog::{Catalog, FlowStatus};
use undaunted_engine::event::Record;
use undaunted_engine::job::Job;
use undaunted_engine::view::{CompletionShare, DELAY_BOUNDS, JobCounters};
use undaunted_policy::CircuitState;

const ITEM_STATES: [&str; 4] = ["running", "waiting", "held", "pending"];
const BREAKER_STATES: [&str; 3] = ["closed", "open", "half_open"];
const FLOW_STATES: [FlowStatus; 3] = [FlowStatus::Active, FlowStatus::Completed, FlowStatus::Failed];

macro_rules! labels {
    ($name:ident, $($field:ident),+) => {
        #[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
        struct $name { $($field: String),+ }
    };
}

labels!(ByJob, job_id);
labels!(ByReason, reason);
labels!(ByOutcome, outcome);
labels!(ByBreaker, breaker, state);
labels!(ByStatus, status);
labels!(ByState, state);

type Ratio = Gauge<f64, AtomicU64>;

#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    consumed: Family<ByJob, Counter>,
    exhausted: Family<ByJob, Counter>,
    completions: Family<ByReason, Counter>,
    ratio: Family<ByJob, Ratio>,
    attempts: Family<ByOutcome, Counter>,
    retries: Counter,
    delays: Histogram,
    breakers: Family<ByBreaker, Gauge>,
    flows: Family<ByStatus, Gauge>,
    items: Family<ByState, Gauge>,
    /// The gauges of `items`, in the order of `ITEM_STATES`.
    queues: [Gauge; 4],
    /// The numbers of each job that are part of `queues`.
    counted: Mutex<BTreeMap<String, [i64; 4]>>,
}

impl Default for Metrics {
    fn default() -> Self {
        let items = Family::<ByState, Gauge>::default();
        let queue = |state: &str| {
            let state = state.to_owned();
            items.get_or_create_owned(&ByState { state })
        };
        let mut metrics = Self {
            registry: Registry::default(),
            consumed: Family::default(),
            exhausted: Family::default(),
            completions: Family::default(),
            ratio: Family::default(),
            attempts: Family::default(),
            retries: Counter::default(),
            delays: Histogram::new(DELAY_BOUNDS.map(|bound| bound.as_secs_f64())),
            breakers: Family::default(),
            flows: Family::default(),
            queues: ITEM_STATES.map(queue),
            items,
            counted: Mutex::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        let to = &mut self.registry;
        let pool = "Retries charged to the pool of a job";
        to.register("retry_budget_consumed", pool, self.consumed.clone());
        let refused = "Retries refused because the pool of a job was exhausted";
        to.register("retry_budget_exhausted", refused, self.exhausted.clone());
        let rule = "Steps completed by their completion rule";
        to.register("best_effort_completions", rule, self.completions.clone());
        let share = "Share of items that had succeeded when the completion rule completed the step";
        to.register("best_effort_completion_ratio", share, self.ratio.clone());
        let attempts = "Attempts that ended, by outcome";
        to.register("undaunted_attempts", attempts, self.attempts.clone());
        let retries = "Retries scheduled";
        to.register("undaunted_retries", retries, self.retries.clone());
        let delays = "Delays before retries";
        to.register("undaunted_retry_delay_seconds", delays, self.delays.clone());
        let breakers = "State of each breaker: 1 for its current state, 0 for the others";
        to.register("undaunted_breaker_state", breakers, self.breakers.clone());
        to.register("undaunted_flows", "Flows by status", self.flows.clone());
        let items = "Items by state: running, waiting, held or pending";
        to.register("undaunted_items", items, self.items.clone());
    }

    /// Counts a record. The job has applied it, and perhaps later ones.
    pub fn observe(&self, job: &Job, record: &Record) {
        let mut new = JobCounters::default();
        new.take(job, record);
        for (outcome, many) in new.attempts {
            let of = ByOutcome { outcome };
            let _ = self.attempts.get_or_create(&of).inc_by(many);
        }
        for (reason, many) in new.completions {
            let of = ByReason { reason };
            let _ = self.completions.get_or_create(&of).inc_by(many);
        }
        let _ = self.retries.inc_by(new.retries_scheduled);
        if new.retries_scheduled > 0 {
            // One record schedules one retry at most, so the sum is its delay.
            self.delays.observe(new.delays.sum.as_secs_f64());
        }
        if new.retries_refused > 0 {
            let exhausted = self.exhausted.get_or_create(&by_job(job.id()));
            let _ = exhausted.inc_by(new.retries_refused);
        }
        self.note_completion(job, new.last_completion);
        self.restore(job);
    }

    /// Brings back what was counted of a job before this process ran it. What is counted over all jobs
    /// begins with the process, as is usual.
    pub fn recover(&self, job: &Job, before: &JobCounters) {
        if before.retries_refused > 0 {
            let exhausted = self.exhausted.get_or_create(&by_job(job.id()));
            // This process may have run the job before and left it.
            let more = before.retries_refused.saturating_sub(exhausted.get());
            let _ = exhausted.inc_by(more);
        }
        self.note_completion(job, before.last_completion);
        self.restore(job);
    }

    fn note_completion(&self, job: &Job, share: Option<CompletionShare>) {
        if let Some(share) = share {
            let ratio = self.ratio.get_or_create(&by_job(job.id()));
            let _ = ratio.set(share.ratio());
        }
    }

    /// Takes what the state of the job says: what it has used of its pool, and its queues.
    pub fn restore(&self, job: &Job) {
        if let Some(pool) = &job.pool {
            let consumed = self.consumed.get_or_create(&by_job(job.id()));
            let more = u64::from(pool.consumed).saturating_sub(consumed.get());
            let _ = consumed.inc_by(more);
        }
        let now = if job.stage.has_ended() { [0; 4] } else { queues(job) };
        self.count(job.id(), now);
    }

    /// Removes the series of a job that has left the store.
    pub fn remove(&self, job: &str) {
        let of = by_job(job);
        let _ = self.consumed.remove(&of);
        let _ = self.exhausted.remove(&of);
        let _ = self.ratio.remove(&of);
        self.count(job, [0; 4]);
    }

    pub fn found_breaker(&self, name: &str, circuit: CircuitState) {
        let state = match circuit {
            CircuitState::Closed { .. } => "closed",
            CircuitState::Open { .. } => "open",
            CircuitState::HalfOpen { .. } => "half_open",
        };
        for known in BREAKER_STATES {
            let of = ByBreaker { breaker: name.to_owned(), state: known.to_owned() };
            let gauge = self.breakers.get_or_create(&of);
            let _ = gauge.set(i64::from(known == state));
        }
    }

    /// All metrics in the text format, with the flows of the catalog.
    pub fn text(&self, catalog: &Catalog) -> String {
        for status in FLOW_STATES {
            let flows = catalog.flows.values();
            let many = flows.filter(|entry| entry.status == status).count();
            let status = status.word().to_owned();
            let gauge = self.flows.get_or_create(&ByStatus { status });
            let _ = gauge.set(i64::try_from(many).unwrap_or(i64::MAX));
        }
        let mut text = String::new();
        // Writing to memory cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    /// Replaces the numbers of one job in the queues, which are sums over all jobs.
    fn count(&self, job: &str, now: [i64; 4]) {
        // Numbers are replaced as a whole, so a panic leaves nothing half done.
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let before = if now == [0; 4] {
            counted.remove(job)
        } else if let Some(known) = counted.get_mut(job) {
            Some(std::mem::replace(known, now))
        } else {
            counted.insert(job.to_owned(), now)
        };
        let before = before.unwrap_or_default();
        for ((gauge, now), before) in self.queues.iter().zip(now).zip(before) {
            let _ = gauge.inc_by(now.saturating_sub(before));
        }
    }
}

fn by_job(job: &str) -> ByJob {
    ByJob { job_id: job.to_owned() }
}

/// In the order of `ITEM_STATES`.
fn queues(job: &Job) -> [i64; 4] {
    let mut queues = [0_i64; 4];
    for (_, step) in job.busy_steps() {
        let waiting = i64::try_from(step.waiting.len()).unwrap_or(i64::MAX);
        let of = [step.running.into(), waiting, step.held.len().into(), step.pending().into()];
        for (sum, more) in queues.iter_mut().zip(of) {
            *sum = sum.saturating_add(more);
        }
    }
    queues
}

#[cfg(test)]
mod tests;
