//! Durability as users see it: the real binary, real processes, real `kill -9`.
//!
//! No test sleeps for a fixed time: it polls for what it expects with `Sandbox::eventually`, which panics
//! after a minute. How often a command ran is counted in files that the commands themselves append to.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic in a test is a red test"
)]

mod archive;
mod breakers;
mod breakers_killed;
mod breakers_shared;
mod cancel;
#[expect(dead_code, reason = "the tests of `serve` use all of it")]
#[path = "../serve/client.rs"]
mod client;
mod clocks;
mod completion;
mod data;
mod environment;
mod failpoints;
mod flows;
mod flows_retried;
mod handlers;
mod history;
mod http;
mod http_killed;
mod http_sent;
mod http_server;
mod keeper_killed;
mod kill;
mod limits;
mod no_room;
mod opt_in;
mod order;
mod output;
mod owners;
mod pools;
mod processes;
mod random_instants;
mod refused;
mod report;
mod reserved;
mod resume;
mod rules;
mod sandbox;
mod signals;
mod stores;
mod sub_flows;
mod webhooks;
mod webhooks_killed;
