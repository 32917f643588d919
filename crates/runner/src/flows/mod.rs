//! Many flows in one process: begun over the network, gone on with when the process starts.
//!
//! A flow is a job like any other, and [`crate::drive::Hub`] runs it. Here is what a server needs
//! beside that: steps that were registered, flows put together from them, results that arrive for
//! one of many, and what is gone on with at the start.

mod begin;
mod deliver;
mod host;
mod recover;
mod registered;

pub use begin::{BeginError, Begun, Wanted};
pub use host::{HearLeft, Host, Settings, WatchFlows};
pub use recover::RecoveredFlows;
pub use registered::{PlanError, PlannedFlow};
