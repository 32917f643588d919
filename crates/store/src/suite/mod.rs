//! The conformance suite of all stores.
//!
//! Each check gets an empty store, on which it may open any number of handles. A handle stands for a process,
//! and closing it for the end of that process. A check panics if the store breaks a promise.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a check fails by panicking, like a test"
)]
#![cfg_attr(not(test), expect(clippy::arithmetic_side_effects, reason = "as in any test"))]

mod concurrency;
mod facts;
mod fixture;
mod journals;
mod model;
mod ownership;
mod requests;
mod snapshots;
mod trim;

pub use fixture::{Reopenable, run_all, run_model};
