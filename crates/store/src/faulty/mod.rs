//! A wrapper around any store that injects scripted faults.

mod faults;
mod store;

pub use faults::{Fault, Faults};
pub use store::FaultyStore;
