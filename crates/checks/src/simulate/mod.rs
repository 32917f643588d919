//! The real engine, policy and loop on virtual time, in a world in which everything goes wrong.
//!
//! A seed stands for jobs ([`case`]), for what their commands do, and for what happens meanwhile
//! ([`fault_plan`]): processes, keepers and commands are killed, disks fail, reports come twice or never,
//! clocks are set. Every record is looked at by a witness who knows the laws. Then nothing goes
//! wrong any more, and every job must end. In calm runs the outcome is compared with what a naive
//! model ([`model`]) foretells, which was written without the engine.

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
