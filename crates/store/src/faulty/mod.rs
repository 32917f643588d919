//! A store that fails on cue, around any other store.

mod faults;
mod store;

pub use faults::{Fault, Faults};
pub use store::FaultyStore;
