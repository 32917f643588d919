//! A job in one line: what `ls` prints.

use serde::Serialize;
use undaunted_policy::Timestamp;

use super::job::waiting;
use super::origin;
use super::report::ItemCounts;
use super::shared::all_held;
use super::status::LiveJobStatus;
use super::time::InstantView;
use crate::event::{Event, JobSubmitted, Record};
use crate::job::{Job, Plans};
use crate::plan::Plan;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobLine {
    pub job: String,
    pub name: Option<String>,
    /// The path of its file; null if it was typed.
    pub workflow: Option<String>,
    /// What `exec` or `map` runs.
    pub argv: Option<Vec<String>>,
    pub status: LiveJobStatus,
    /// Why it cannot be read, if it cannot.
    pub error: Option<String>,
    pub submitted_at: Option<InstantView>,
    pub ended_at: Option<InstantView>,
    pub seed: Option<String>,
    pub items: ItemCounts,
    pub attempts: u64,
    pub retries: u64,
    pub waiting: u64,
    pub held: u64,
    pub next_due_at: Option<InstantView>,
    /// The process that runs it.
    pub owner: Option<u32>,
}

impl JobLine {
    /// From the first and the last record of a job that has ended: a long history need not be read.
    pub fn ended(first: &Record, last: &Record, plans: &Plans) -> Option<Self> {
        let (Event::Job(first_event), Event::Job(last_event)) = (&first.event, &last.event) else {
            return None;
        };
        let (stage, ended) = last_event.ended()?;
        let submitted = first_event.submitted()?;
        let plan = plans.of(submitted).ok()?;
        let line = Self::submitted(submitted, &plan, first.at);
        Some(Self {
            status: LiveJobStatus::As(stage.into()),
            ended_at: Some(InstantView(last.at)),
            items: (&ended.counts).into(),
            attempts: ended.counts.attempts,
            retries: ended.counts.retries,
            ..line
        })
    }

    pub fn of(job: &Job, owner: Option<u32>) -> Self {
        let counts = job.tally();
        let line = Self::submitted(job.submitted(), job.plan(), job.times.submitted_at);
        let waits = job.steps.iter().map(|step| step.waiting.len());
        let due = waiting(job).map(|(_, due)| due).min();
        Self {
            status: LiveJobStatus::of(job, owner.is_some()),
            ended_at: job.times.ended_at.map(InstantView),
            items: (&counts).into(),
            attempts: counts.attempts,
            retries: counts.retries,
            waiting: super::job::count(waits.sum()),
            held: super::job::count(all_held(job).count()),
            next_due_at: due.map(InstantView),
            owner,
            ..line
        }
    }

    fn submitted(submitted: &JobSubmitted, plan: &Plan, at: Timestamp) -> Self {
        Self {
            name: plan.workflow().name.clone(),
            workflow: origin::workflow(submitted),
            argv: origin::argv(plan, submitted),
            submitted_at: Some(InstantView(at)),
            seed: Some(submitted.seed.to_string()),
            error: None,
            ..Self::unreadable(&submitted.job, "")
        }
    }

    pub fn unreadable(job: &str, why: &str) -> Self {
        Self {
            job: job.to_owned(),
            name: None,
            workflow: None,
            argv: None,
            status: LiveJobStatus::Unreadable,
            error: Some(why.to_owned()),
            submitted_at: None,
            ended_at: None,
            seed: None,
            items: ItemCounts::default(),
            attempts: 0,
            retries: 0,
            waiting: 0,
            held: 0,
            next_due_at: None,
            owner: None,
        }
    }
}
