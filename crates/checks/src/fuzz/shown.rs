//! Everything that can be seen of a job, while it is folded and afterwards.
//!
//! Asked of jobs that no engine would write: whoever looks into a damaged journal is to see what is
//! there, and not a crash.

use std::collections::BTreeMap;

use serde_json::Value;
use undaunted_engine::breaker::AdmissionControl;
use undaunted_engine::checkpoint::export;
use undaunted_engine::checkpoint::shape::RetryCheckpointState;
use undaunted_engine::effect::wanted_by;
use undaunted_engine::event::Record;
use undaunted_engine::job::Job;
use undaunted_engine::view::log::records_of;
use undaunted_engine::view::{
    Projection, all_held, attempt, best_effort, best_effort_names, event, flow, flow_event,
    forecast, holding, prober, report, signature, tolerated,
};
use undaunted_policy::Timestamp;
use undaunted_server::Metrics;

use super::law::uphold;

/// What is folded beside a job.
pub(super) struct Shown {
    past: Projection,
    metrics: Metrics,
}

impl Default for Shown {
    fn default() -> Self {
        Self {
            past: Projection::following_all(),
            metrics: Metrics::default(),
        }
    }
}

impl Shown {
    /// Looks at one record. The job is as it is after it.
    pub(super) fn take(&mut self, job: &Job, seq: u64, record: &Record) {
        self.past.take(job, seq, record);
        self.metrics.observe(job, record);
        let _ = wanted_by(record);
        let shown = serde_json::to_value(event(job, seq, record)).unwrap_or_default();
        let told = shown.get("seq") == Some(&Value::from(seq))
            && shown.get("type") == Some(&Value::from(record.event.word()))
            && shown.get("at").is_some_and(Value::is_string);
        uphold(
            "an event says what it is, and when",
            told,
            &(record, &shown),
        );
        for line in records_of(job, record) {
            let line = line.line();
            let whole = !line.trim_end().contains('\n');
            uphold("a record of the log is one line", whole, &line);
        }
        if let Some(told) = flow_event(job, &self.past, seq, record) {
            let told = serde_json::to_value(told).unwrap_or_default();
            let numbered = told.get("sequence") == Some(&Value::from(seq));
            uphold("an event has the number of its record", numbered, &told);
        }
    }

    /// Looks at what it has come to.
    pub(super) fn look(&self, job: &Job) {
        let now = job.times.last_at;
        let _ = report(job);
        let _ = job.tally();
        if let Some(of) = best_effort(job) {
            let _ = best_effort_names(job, &of);
        }
        let _ = tolerated(job);
        let breakers = AdmissionControl::of(job.plan().breakers());
        for item in all_held(job) {
            let known = holding(job, &breakers, item).is_some();
            uphold("what is held can be shown", known, &item);
        }
        for name in job.breakers() {
            let _ = prober(job, &name);
        }
        for (&item, history) in &self.past.items.items {
            for made in &history.attempts {
                uphold("an attempt has a word", !made.word().is_empty(), made);
                let _ = made.cause();
                let _ = attempt(job, made);
            }
            for stop in &history.stops {
                let _ = signature(&stop.error);
            }
            for now in [now, Timestamp::MAX] {
                let most = 5;
                let told = forecast(job, &breakers, item, now, most);
                let few = told.is_none_or(|told| told.retries.len() <= most);
                uphold("a forecast is as long as was asked", few, &item);
            }
        }
        self.exported(job);
        let flow = serde_json::to_value(flow(job, &self.past, None)).unwrap_or_default();
        uphold("a flow is shown as an object", flow.is_object(), &flow);
        self.metrics.restore(job);
        let text = self
            .metrics
            .text(&undaunted_engine::catalog::Catalog::default());
        uphold("metrics have an end", text.ends_with("# EOF\n"), &text);
    }

    /// What is written for another system can be read by this one.
    fn exported(&self, job: &Job) {
        let histories: BTreeMap<_, _> = self.past.items.items.clone();
        let state = export(job, &AdmissionControl::default(), &histories);
        let text = serde_json::to_string(&state).unwrap_or_default();
        let again: Result<RetryCheckpointState, _> = serde_json::from_str(&text);
        uphold(
            "what was exported can be read",
            again.is_ok(),
            &(&text, &again),
        );
        let same = again.is_ok_and(|again| serde_json::to_string(&again).ok() == Some(text));
        uphold("what was exported is read as it was", same, &state);
    }
}
