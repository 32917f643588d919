//! The catalog of a store: the steps that were registered, and the flows there are.
//!
//! It has no owner: every process with a [`Book`] reads and writes it, and decides again when another
//! process has changed it meanwhile.

mod book;
mod draft;
mod of_job;
mod pages;
mod shared;
mod steps;
#[cfg(test)]
mod tests;
mod wish;
mod writer;

pub use book::Book;
pub use of_job::{activated, deactivated};
pub use pages::{FAMILY, ID, records};
pub(crate) use steps::{RegisteredStep, Steps};
