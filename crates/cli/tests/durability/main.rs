//! The durable core as its users see it: the real binary, real processes, real `kill -9`.
//!
//! Nothing here waits for a fixed time: a test waits for what it expects, through
//! `World::eventually`, which fails loudly. How often something ran is told by files that the commands
//! themselves write, the outside world's own record.
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
mod opt_in;
mod order;
mod output;
mod owners;
mod pools;
mod processes;
mod random_instants;
mod refused;
mod report;
mod resume;
mod rules;
mod signals;
mod stores;
mod sub_flows;
mod webhooks;
mod webhooks_killed;
mod world;
