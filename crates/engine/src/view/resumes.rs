//! What each resume of a job found and did: what `show --resumes` prints.

use serde::Serialize;

use super::context::ViewContext;
use super::projection::ResumeRecord;
use super::status::LiveJobStatus;
use super::time::{InstantView, MillisView};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ResumesView {
    pub job: String,
    pub status: LiveJobStatus,
    /// The first run is one of them.
    pub runs: u32,
    pub submitted_at: InstantView,
    /// Those of handlers are left out.
    pub attempts: u64,
    pub resumes: Vec<ResumeView>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ResumeView {
    pub run: u32,
    pub at: InstantView,
    pub downtime_ms: MillisView,
    /// Whether the job had been suspended in good order.
    pub planned: bool,
    pub restored: RestoredView,
    pub attempts_before: u64,
    /// Started from then until the next resume.
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
        let found = resumed.restored;
        Self {
            run: resumed.run,
            at: InstantView(resume.at),
            downtime_ms: MillisView(resumed.away),
            planned: resumed.planned,
            restored: RestoredView {
                running: found.running,
                waiting: found.waiting,
                held: found.held.unwrap_or_default(),
                settled: found.settled,
                pending: found.pending,
            },
            attempts_before: found.attempts,
            attempts_after: resume.attempts,
        }
    }
}
