//! The workloads. Each measures and returns a section of the document.

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
