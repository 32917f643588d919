//! The keeper, with real processes and real signals.
//!
//! No test waits for a fixed time; it waits for what it expects with `KeeperFixture::eventually`.
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
mod launching;
mod output;
mod redaction;
mod refusing;
mod reserved;
mod running;
