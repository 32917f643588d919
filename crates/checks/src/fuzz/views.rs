//! Every view of a job, while it is folded and afterwards.
//!
//! The journals include some that no engine would write: the viewer of a damaged journal must see what is
//! there, and not a crash.

use std::collections::BTreeMap;

use serde_json::Value;
use undaunted_engine::breaker::AdmissionControl;
use undaunted_engine::effect::wanted_by;
use undaunted_engine::event::Record;
use undaunted_engine::job::Job;
use undaunted_engine::state_file::shape::RetryCheckpointState;
use undaunted_engine::state_file::{ExportedPast, export};
use undaunted_engine::view::log::records_of;
use undaunted_engine::view::{
    BudgetView, DeadLetterView, HoldView, ItemView, JobExplanation, JobLine, JobView, Projection,
    ResumesView, ViewContext, all_held, attempt, event, flow, flow_event, forecast, group_dead_letters,
    prober, report, signature,
};
use undaunted_policy::Timestamp;
use undaunted_server::Metrics;

use super::law::uphold;

/// What is folded beside a job.
pub(super) struct JobViews {
    projection: Projection,
    metrics: Metrics,
    past: ExportedPast,
}

impl Default for JobViews {
    fn default() -> Self {
        Self {
            projection: Projection::following_all(),
            metrics: Metrics::default(),
            past: ExportedPast::default(),
        }
    }
}

impl JobViews {
    /// Checks the views of one record. The job is in the state after it.
    pub(super) fn take(&mut self, job: &Job, seq: u64, record: &Record) {
        self.projection.take(job, seq, record);
        self.metrics.observe(job, record);
        self.past.take(job, record);
        let _ = wanted_by(record);
        let shown = serde_json::to_value(event(job, seq, record)).unwrap_or_default();
        let described = shown.get("seq") == Some(&Value::from(seq))
            && shown.get("type") == Some(&Value::from(record.event.word()))
            && shown.get("at").is_some_and(Value::is_string);
        uphold("an event says what it is, and when", described, &(record, &shown));
        for line in records_of(job, record) {
            let line = line.line();
            let whole = !line.trim_end().contains('\n');
            uphold("a record of the log is one line", whole, &line);
        }
        if let Some(described) = flow_event(job, &self.projection, seq, record) {
            let described = serde_json::to_value(described).unwrap_or_default();
            let numbered = described.get("sequence") == Some(&Value::from(seq));
            uphold("an event has the number of its record", numbered, &described);
        }
    }

    /// Checks the views of the folded job.
    pub(super) fn look(&self, job: &Job) {
        let _ = report(job);
        let _ = job.tally();
        let breakers = AdmissionControl::with_breakers(job.plan().breakers());
        for now in [job.times.last_at, Timestamp::MAX] {
            let context = ViewContext {
                job,
                projection: &self.projection,
                breakers: &breakers,
                owner: None,
                seen: None,
                now,
            };
            self.views(&context);
        }
        for name in job.breakers() {
            let _ = prober(job, &name);
        }
        for history in self.projection.items.items.values() {
            for made in &history.attempts {
                uphold("an attempt has a word", !made.word().is_empty(), made);
                let _ = made.cause();
                let _ = attempt(job, made);
            }
            for stop in &history.stops {
                let _ = signature(job.texts.read(&stop.stopped.error));
            }
        }
        self.exported(job);
        let flow = serde_json::to_value(flow(job, &self.projection, None)).unwrap_or_default();
        uphold("a flow is shown as an object", flow.is_object(), &flow);
        self.metrics.restore(job);
        let text = self.metrics.text(&undaunted_engine::catalog::Catalog::default());
        uphold("metrics have an end", text.ends_with("# EOF\n"), &text);
    }

    fn views(&self, context: &ViewContext<'_>) {
        let job = context.job;
        let histories = &self.projection.items.items;
        shows(&JobView::of(context, histories));
        shows(&JobExplanation::of(context));
        shows(&ResumesView::of(context));
        shows(&BudgetView::of(context));
        shows(&JobLine::of(job, context.owner));
        for item in all_held(job) {
            let known = HoldView::of(context, item).is_some();
            uphold("what is held can be shown", known, &item);
        }
        for (&item, history) in histories {
            shows(&ItemView::of(context, item, None, history));
            shows(&DeadLetterView::of(job, item, history));
            let most = 5;
            let described = forecast(context, item, most);
            let few = described.is_none_or(|described| described.retries.len() <= most);
            uphold("a forecast is as long as was asked", few, &item);
        }
        let dead = group_dead_letters(job, job.dead.keys().copied());
        let grouped: usize = dead.iter().map(|(_, items)| items.len()).sum();
        uphold("every dead letter is in one group", grouped == job.dead.len(), &dead);
    }

    /// An exported state can be read again.
    fn exported(&self, job: &Job) {
        let histories: BTreeMap<_, _> = self.projection.items.items.clone();
        let state = export(job, &AdmissionControl::default(), &histories, &self.past);
        let text = serde_json::to_string(&state).unwrap_or_default();
        let again: Result<RetryCheckpointState, _> = serde_json::from_str(&text);
        uphold("what was exported can be read", again.is_ok(), &(&text, &again));
        let same = again.is_ok_and(|again| serde_json::to_string(&again).ok() == Some(text));
        uphold("what was exported is read as it was", same, &state);
    }
}

fn shows<T: std::fmt::Debug + serde::Serialize>(view: &T) {
    let written = serde_json::to_string(view).is_ok();
    uphold("a view can be written as JSON", written, view);
}
