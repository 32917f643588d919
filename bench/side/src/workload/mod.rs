//! The workloads, one a file. Each measures and says what came of it.

mod all;
mod commands;
mod growth;
mod held;
mod kill;
mod noop;
mod overhead;
mod pending;
mod policy;
mod retry;

pub(crate) use all::ALL;
