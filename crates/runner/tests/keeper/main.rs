//! The keeper with real processes and real signals.
//!
//! Nothing here waits for a fixed time: a test waits for what it expects, through
//! `KeeperFixture::eventually`, which fails loudly.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic in a test is a red test"
)]

mod ending;
mod engine_killed;
mod fixture;
mod format_1;
mod keeper_killed;
mod output;
mod refusing;
mod running;
