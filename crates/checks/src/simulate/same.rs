//! Whether two states of a job are the same.

use undaunted_engine::job::Job;

/// How the live state of a job differs from what its journal comes to, if it does.
pub(super) fn difference(live: &Job, journal: &Job) -> Option<String> {
    let parts: [(&str, bool); 12] = [
        ("stage", live.stage == journal.stage),
        ("run", live.run == journal.run),
        ("last record", live.times.last_at == journal.times.last_at),
        // Numbers of starts that were taken back before they were written are passed over.
        ("next start", live.starts.next >= journal.starts.next),
        ("running", live.starts.running == journal.starts.running),
        ("accepted", live.starts.accepted == journal.starts.accepted),
        ("pool", live.pool == journal.pool),
        ("counts", live.counts == journal.counts),
        ("paused", live.times.paused == journal.times.paused),
        ("stopped", live.failures.stopped == journal.failures.stopped),
        ("dead letters", live.dead == journal.dead),
        ("steps", same_steps(live, journal)),
    ];
    let wrong = parts.iter().find(|(_, same)| !same)?;
    Some(wrong.0.to_owned())
}

fn same_steps(live: &Job, journal: &Job) -> bool {
    live.steps.len() == journal.steps.len()
        && live.steps.iter().zip(&journal.steps).all(|(live, journal)| {
            live.stage == journal.stage
                && live.waiting == journal.waiting
                && live.held == journal.held
                && live.succeeded == journal.succeeded
                && live.dead == journal.dead
                && live.skipped == journal.skipped
                && live.missing == journal.missing
                && live.running == journal.running
                && live.items.iter().eq(journal.items.iter())
        })
}
