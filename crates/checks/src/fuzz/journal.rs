//! Bytes that may be a journal: one record per line.
//!
//! A line is a record of the job in the notation of `notation`; with `b` before it, a record of a breaker,
//! which is folded on its own. Records that no engine would write in this order are folded all the same: a
//! stored fact is a fact. The resulting job can be viewed (`views`) and driven on (`drive`), and the same
//! journal always gives the same job.

use std::collections::BTreeSet;

use undaunted_engine::breaker::BreakerRecord;
use undaunted_engine::event::Record;
use undaunted_engine::job::{Job, JobStage};
use undaunted_engine::law::{violations_by_record, violations_in_state};

use super::law::uphold;
use super::views::JobViews;
use super::{drive, notation, record};

/// The most records that are folded; longer journals show nothing new.
const MOST: usize = 200;

/// Folds the records and returns the words of their events, the stage of the job, and `lawful` if an engine
/// could have written them.
pub fn journal_fold(data: &[u8]) -> BTreeSet<&'static str> {
    let mut outcomes = BTreeSet::new();
    let Some((job, lawful)) = fold(data, &mut outcomes) else {
        outcomes.insert("no job");
        return outcomes;
    };
    let repeated = fold(data, &mut BTreeSet::new()).map(|(repeated, _)| repeated);
    uphold(
        "the same journal is the same job",
        repeated.is_some_and(|repeated| format!("{repeated:?}") == format!("{job:?}")),
        &job,
    );
    outcomes.insert(stage(job.stage));
    outcomes.extend(lawful.then_some("lawful"));
    drive::drive(&job);
    outcomes
}

fn fold(data: &[u8], outcomes: &mut BTreeSet<&'static str>) -> Option<(Job, bool)> {
    let mut found: Option<(Job, JobViews)> = None;
    let mut lawful = true;
    for (seq, line) in (1..).zip(notation::lines(data).take(MOST)) {
        if let Some(line) = line.strip_prefix(b"b") {
            if let Ok(record) = BreakerRecord::decode(&notation::record(line)) {
                record::ask(&record);
            }
            continue;
        }
        let Ok(record) = Record::decode(&notation::record(line)) else {
            continue;
        };
        let Some((job, shown)) = &mut found else {
            // Records before a submission belong to no job.
            if let Ok(job) = Job::begin(&record) {
                outcomes.insert(record.event.word());
                let mut shown = JobViews::default();
                shown.take(&job, seq, &record);
                found = Some((job, shown));
            }
            continue;
        };
        outcomes.insert(record.event.word());
        lawful = violations_by_record(job, &record).is_empty() && lawful;
        job.apply(&record);
        lawful = violations_in_state(job).is_empty() && lawful;
        shown.take(job, seq, &record);
    }
    let (job, shown) = found?;
    shown.look(&job);
    Some((job, lawful))
}

const fn stage(stage: JobStage) -> &'static str {
    match stage {
        JobStage::Running => "running",
        JobStage::Stopping(_) => "stopping",
        JobStage::Suspended => "suspended",
        JobStage::Completed => "completed",
        JobStage::Partial => "partial",
        JobStage::Failed => "failed",
        JobStage::Cancelled => "cancelled",
    }
}
