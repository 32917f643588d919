//! Many flows in one process, or in several: with a real store, real requests, and real kills.
//!
//! Nothing here waits for a fixed time: a test waits for what it expects, through
//! `World::eventually`, which fails loudly.
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
mod world;
