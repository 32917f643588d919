//! The resumes of a job, as `show --resumes` prints them.

use serde::Serialize;

use super::context::ViewContext;
use super::projection::ResumeRecord;
use super::status::LiveJobStatus;
use super::time::{InstantView, MillisView};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ResumesView {
    pub job: String,
    pub status: LiveJobStatus,
    /// Including the first run.
    pub runs: u32,
    pub submitted_at: InstantView,
    /// Without those of handlers.
    pub attempts: u64,
    pub resumes: Vec<ResumeView>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ResumeView {
    pub run: u32,
    pub at: InstantView,
    pub downtime_ms: MillisView,
    /// Whether the job had been suspended.
    pub planned: bool,
    pub restored: RestoredView,
    pub attempts_before: u64,
    /// Until the next resume.
    pub attempts_after: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RestoredView {
    pub running: u32,
    pub waiting: u32,
    pub held: u32,
    pub settled: u32,
    pub pending: u32,
}

impl ResumesView {
    pub fn of(context: &ViewContext<'_>) -> Self {
        let job = context.job;
        let resumes = context.projection.resumes.iter();
        Self {
            job: job.id().to_owned(),
            status: LiveJobStatus::of(job, context.owner.is_some()),
            runs: job.run,
            submitted_at: InstantView(job.times.submitted_at),
            attempts: job.counts.attempts,
            resumes: resumes.map(ResumeView::of).collect(),
        }
    }
}

impl ResumeView {
    fn of(resume: &ResumeRecord) -> Self {
        let resumed = resume.resumed;
        let restored = resumed.work;
        Self {
            run: resumed.run,
            at: InstantView(resume.at),
            downtime_ms: MillisView(resumed.away),
            planned: resumed.planned,
            restored: RestoredView {
                running: restored.running,
                waiting: restored.waiting,
                held: restored.held.unwrap_or_default(),
                settled: restored.settled,
                pending: restored.pending,
            },
            attempts_before: restored.attempts,
            attempts_after: resume.attempts,
        }
    }
}
