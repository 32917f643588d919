//! `undaunted serve` as users see it: the real binary, a real step server, real clients, real `kill -9`.
//!
//! Clients use plain sockets, so that the tests show requests and answers as they are sent. No test sleeps
//! for a fixed time: it polls for what it expects with `Sandbox::eventually`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic in a test is a red test"
)]

mod api;
mod breakers;
mod breakers_many;
mod client;
mod commands;
mod events;
mod front;
mod killed;
mod late;
mod many;
mod observed;
mod opt_in;
mod query;
mod random_instants;
mod recovery;
mod retries;
mod reviewed;
mod safe;
mod served;
mod shared;
mod signals;
mod state;
mod webhooks;

#[expect(dead_code, reason = "the tests of the durable core use all of it")]
#[path = "../durability/history.rs"]
mod history;
#[expect(dead_code, reason = "the tests of the durable core use all of it")]
#[path = "../durability/http_server.rs"]
mod http_server;
#[expect(dead_code, reason = "the tests of the durable core use all of it")]
#[path = "../durability/processes.rs"]
mod processes;
#[expect(dead_code, reason = "the tests of the durable core use all of it")]
#[path = "../durability/sandbox.rs"]
mod sandbox;
