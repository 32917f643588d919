//! The contestants, of Undaunted and of the peers, each defined once.
//!
//! The criterion benchmark and the program with its seven rounds time the same loops, so that they differ only
//! in their statistics. This crate prints nothing and checks no target.

mod contestant;
mod delay;
mod pool;
mod schedule;
mod success;
mod verdict;

use undaunted_policy::PolicyError;

pub use contestant::{Contestant, Group, Role, Target};

/// Every group, in the order of the report.
///
/// # Errors
/// A policy that the crate under test refuses.
pub fn groups() -> Result<Vec<Group>, PolicyError> {
    Ok(vec![
        delay::group()?,
        delay::capped()?,
        success::waiting()?,
        success::blocking()?,
        pool::check(),
        pool::refill(),
        verdict::group()?,
        schedule::group()?,
    ])
}
