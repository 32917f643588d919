//! A flow with async results, always the same.
//!
//! Of its one async step, item 0 was accepted, item 1 failed and waits for its retry, item 2 has its result,
//! and item 3 has not begun. No engine runs it.

use std::sync::OnceLock;
use std::time::Duration;

use undaunted_engine::decide::react;
use undaunted_engine::effect::ready;
use undaunted_engine::event::{Event, JobEvent, JobSubmitted, Record};
use undaunted_engine::id::{CommandId, StartId, StepId};
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::Job;
use undaunted_engine::plan::Plan;
use undaunted_engine::submission::{SubmissionContext, submission};
use undaunted_engine::task::{as_uuid, receipt_token};
use undaunted_engine::workflow::{Operator, Source, check};
use undaunted_policy::{FailureCause, Timestamp};

use super::drive::{admission_of, gate_of};

const TEXT: &str = "
mode: flow
goals: [resize]
init: {n: [1, 2, 3, 4]}
steps:
  - id: resize
    name: resize
    type: async
    http: {endpoint: 'http://127.0.0.1:0/resize', completion_timeout: 86400000}
    attributes: {n: {role: required, for_each: true}, small: {role: output}}
    work_config: {max_retries: 2, backoff: 60000, backoff_type: fixed, parallelism: 3}
  - id: other
    name: other
    type: sync
    http: {endpoint: 'http://127.0.0.1:0/other'}
    attributes: {small: {role: required}}
";

/// In the middle of a century, so that clocks are on both sides of it.
const T0: Timestamp = Timestamp::from_millis(1_700_000_000_000);

pub(super) const FLOW: &str = "later";

pub(super) const STEP: &str = "resize";

/// Its journal and its state.
#[derive(Debug)]
pub(super) struct WaitingFlow {
    pub(super) records: Vec<Record>,
    pub(super) job: Job,
}

pub(super) fn submitted(name: &str, text: &str) -> Option<(Record, Job)> {
    let operator = Operator::default();
    let workflow = check(&Source::new("f.yaml", text), &operator).workflow?;
    let around = SubmissionContext {
        job: name.to_owned(),
        file: "f.yaml".to_owned(),
        working_dir: "/".to_owned(),
        seed: 7,
        operator: &operator,
        variable: &|_| None,
        release: String::new(),
        flow: None,
        token_key: Some(7),
    };
    let submitted: JobSubmitted = submission(Plan::new(workflow), text, around).ok()?;
    let event = Event::Job(JobEvent::Submitted(Box::new(submitted)));
    let record = Record { at: T0, event };
    let job = Job::begin(&record).ok()?;
    Some((record, job))
}

/// `None` if this release refuses the workflow, which a test would notice.
pub(super) fn waiting_flow() -> Option<&'static WaitingFlow> {
    static LATER: OnceLock<Option<WaitingFlow>> = OnceLock::new();
    LATER.get_or_init(made).as_ref()
}

fn made() -> Option<WaitingFlow> {
    let (first, job) = submitted(FLOW, TEXT)?;
    let mut flow = WaitingFlow { records: vec![first], job };
    let now = T0.after(Duration::from_secs(1));
    flow.feed(&Input::Woke, now);
    let mut breakers = admission_of(&flow.job, now);
    for item in ready(&flow.job, &breakers, now) {
        let refused = None;
        let gate = gate_of(&flow.job, &mut breakers, item);
        flow.feed(&Input::Start { item, refused, gate }, now);
    }
    let starts: Vec<StartId> = flow.job.starts.running.keys().copied().collect();
    let [first, second, third] = starts.try_into().ok()?;
    for start in [first, second, third] {
        flow.feed(&Input::Accepted { start }, now);
    }
    for (start, failure) in [(second, Some(FailureCause::Timeout)), (third, None)] {
        let end =
            AttemptEnd { start, failure, output: Some("{\"small\":1}".to_owned()), ..AttemptEnd::default() };
        flow.feed(&Input::Ended(Box::new(end)), now);
    }
    Some(flow)
}

impl WaitingFlow {
    fn feed(&mut self, input: &Input, now: Timestamp) {
        let told = react(&mut self.job, input, now);
        self.records.extend(told.records);
    }

    /// The token that was given out for an item.
    pub(super) fn token(&self, item: u32) -> String {
        let item = StepId(0).item(item);
        as_uuid(&receipt_token(&self.job, item, CommandId(0), 1))
    }
}

#[cfg(test)]
mod tests {
    use undaunted_engine::task::{TokenStatus, find_token};

    use super::*;

    #[test]
    fn every_item_is_where_it_should_be() {
        let flow = waiting_flow().unwrap();
        let found = |item| find_token(&flow.job, STEP, &flow.token(item));
        assert!(matches!(found(0), TokenStatus::Running(_)));
        assert!(matches!(found(1), TokenStatus::Waiting(_)));
        assert_eq!(found(2), TokenStatus::Expired);
        assert_eq!(found(3), TokenStatus::Unknown);
    }
}
