//! The catalog of a store: the steps that were registered, and the flows there are.
//!
//! Nobody owns it. Every process that has a [`Book`] reads it and writes to it, and what somebody
//! has decided on a state that others have changed meanwhile is decided again.

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
