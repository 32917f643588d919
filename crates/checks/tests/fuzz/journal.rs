//! Records and journals of jobs, breakers and the catalog.

use undaunted_checks::fuzz::{journal_fold, journal_record};

use crate::feed::{brings_up, fuzz};

#[test]
fn no_mutant_of_a_record_breaks_a_law() {
    fuzz(journal_record, "journal_record", 20_000);
}

#[test]
fn no_mutant_of_a_journal_breaks_a_law() {
    fuzz(journal_fold, "journal_fold", 300);
}

#[test]
fn a_run_meets_every_kind_of_record() {
    brings_up(journal_record, "journal_record", 500, &EVENTS);
    let others = [
        "configured",
        "failure",
        "success",
        "opened",
        "tripped",
        "half_opened",
        "probe",
        "probe_succeeded",
        "probe_lost",
        "closed",
        "reset",
        "step_registered",
        "step_updated",
        "step_unregistered",
        "step_health_changed",
        "flow_activated",
        "flow_deactivated",
        "flow_archiving",
        "flow_archived",
        "flow_removed",
        "refused",
    ];
    brings_up(journal_record, "journal_record", 500, &others);
}

#[test]
fn a_run_meets_every_kind_of_event_and_every_end_of_a_job() {
    brings_up(journal_fold, "journal_fold", 150, &EVENTS);
    let ends = [
        "no job",
        "running",
        "stopping",
        "suspended",
        "completed",
        "partial",
        "failed",
        "cancelled",
        "lawful",
    ];
    brings_up(journal_fold, "journal_fold", 150, &ends);
}

const EVENTS: [&str; 43] = [
    "job_submitted",
    "job_resumed",
    "step_started",
    "items_read",
    "input_failed",
    "text_kept",
    "attempt_started",
    "attempt_succeeded",
    "attempt_failed",
    "retry_scheduled",
    "command_stopped",
    "command_repeated",
    "command_recovered",
    "item_succeeded",
    "item_dead_lettered",
    "item_skipped",
    "job_stopping",
    "step_completed",
    "step_failed",
    "job_completed",
    "job_failed",
    "job_cancelled",
    "job_suspended",
    "policy_changed",
    "state_imported",
    "job_redriven",
    "item_redriven",
    "item_dropped",
    "job_paused",
    "job_unpaused",
    "pool_topped_up",
    "held",
    "released",
    "breaker_opened",
    "breaker_half_opened",
    "breaker_closed",
    "breaker_configured",
    "completion_reached",
    "late_result",
    "step_skipped",
    "step_unreachable",
    "attribute_set",
    "attempt_accepted",
];
