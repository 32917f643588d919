//! Simulation of the real engine, policy and event loop on virtual time, with faults.
//!
//! A seed stands for jobs ([`case`]), the behaviour of their commands, and faults (`plan`): processes,
//! keepers and commands are killed, disks fail, results arrive twice or never, clocks are set. An oracle
//! checks every record. After some time the faults end, and every job must end. In calm runs without faults
//! the outcome is compared with the prediction of a naive model ([`model`]) that was written without the
//! engine.

mod breaker_oracle;
mod campaign;
pub mod case;
mod decisions;
mod events;
mod faults;
mod keepers;
mod ledger;
mod machine;
pub mod model;
mod oracle;
mod plan;
mod process;
mod results;
mod run;
mod seed;
mod store;
mod world;

pub use campaign::{SimulateArgs, run as check};
pub use plan::SimPlan;
pub use run::{SimOutcome, run};
pub use seed::{SeedResult, SimFinding, check_seed};
