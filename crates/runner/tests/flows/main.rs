//! Flows in one process or in several, with a real store, real HTTP requests and real kills.
//!
//! No test waits for a fixed time; it waits for what it expects with `FlowFixture::eventually`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic in a test is a red test"
)]

mod begin;
mod broken;
mod candidates;
mod checked_once;
mod definitions;
mod deliver;
mod engine;
mod fixture;
#[expect(dead_code, reason = "other tests use the rest of it")]
#[path = "../../../cli/tests/durability/http_server.rs"]
mod http_server;
mod killed;
mod many;
mod process;
mod refused;
mod sub_flows;
mod two_hosts;
mod work_config;
