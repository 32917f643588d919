//! The engine, one call at a time: a workflow and events make a state, one input is told, and what
//! follows is compared. No clock, no files, no waiting.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic in a test is a red test"
)]

mod accepted;
mod admission;
mod asked;
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
mod desk;
mod facts;
mod flow_failures;
mod flows;
mod forecasts;
mod golden;
mod handlers;
mod hold_limits;
mod holds;
mod imports;
mod journals;
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
mod retries;
mod rules;
mod run;
mod scene;
mod shared_breakers;
mod spoken;
mod tasks;
mod texts;
mod tolerance;
mod view_item_scenes;
mod view_laws;
mod view_scenes;
mod views;
mod walks;
mod workflows;
mod world;
