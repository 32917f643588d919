//! The pure engine against the reference model.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic in a test is a red test"
)]

mod agrees;
mod world;
