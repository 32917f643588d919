//! What every store has to pass.
//!
//! One suite for all: a promise that only one store keeps is not a promise. Each check gets a place
//! of its own, on which it may open as many handles as it likes; a handle stands for a process, and
//! closing it for the end of one. A check panics when a promise is broken.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a check says what it expects; a panic is its way to fail"
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
