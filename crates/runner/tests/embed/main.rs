//! Jobs whose commands are functions of a program.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a panic in a test is a red test")]

mod ahead;
mod guide;
mod killed;
mod meaning;
mod refused;
