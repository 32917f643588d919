//! The real engine, policy and loop on virtual time, in a world in which everything goes wrong.
//!
//! A seed stands for jobs ([`case`]), for what their commands do, and for what happens meanwhile
//! ([`harm`]): processes, keepers and commands are killed, disks fail, reports come twice or never,
//! clocks are set. Every record is looked at by a witness who knows the laws. Then nothing goes
//! wrong any more, and every job must end. In calm runs the outcome is compared with what a naive
//! model ([`model`]) foretells, which was written without the engine.

mod again;
mod blows;
mod campaign;
pub mod case;
mod gates;
mod happen;
pub mod harm;
mod keepers;
mod ledger;
mod machine;
pub mod model;
mod outside;
mod plan;
mod process;
mod reports;
mod run;
mod same;
mod seed;
mod shrink;
mod store;
mod witness;

pub use campaign::{Args, run as check};
pub use plan::Plan;
pub use run::{Outcome, run};
pub use seed::{Finding, Seen, of_seed};
