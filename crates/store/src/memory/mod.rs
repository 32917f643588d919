//! A store in memory, for simulation and tests.

mod journals;
mod store;

pub use store::MemoryStore;
