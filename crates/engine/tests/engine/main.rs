//! The engine, one call at a time: a workflow and its events make a state, the state reacts to one input, and
//! the records are compared. No clock, no files, no waiting.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic in a test is a failed test"
)]
#![expect(clippy::similar_names, reason = "`test` is a job, and `text` its workflow")]

mod accepted;
mod admission;
mod breaker_facts;
mod breaker_journal;
mod breaker_records;
mod breakers;
mod calls;
mod cancel;
mod captures;
mod catalog;
#[cfg(feature = "count-checks")]
mod checked_once;
mod completion;
mod completion_model;
mod counters;
mod deadlines;
mod delay_budget;
mod fixture;
mod flow_completion;
mod flow_failures;
mod flows;
mod forecasts;
mod golden;
mod handlers;
mod hold_limits;
mod holds;
mod imports;
mod late;
mod lists;
mod log;
mod opt_in;
mod order;
mod pool;
mod probing;
mod processes;
mod projection;
mod recovery;
mod redrive;
mod reports;
mod reservations;
mod retries;
mod rules;
mod shared_breakers;
mod suspended_inputs;
mod tasks;
mod texts;
mod tolerance;
mod updates;
mod view_cases;
mod view_item_cases;
mod view_laws;
mod views;
mod walks;
