//! Many flows in one process: begun over the network, resumed when the process starts.
//!
//! A flow is a job like any other, and [`crate::drive::Hub`] runs it. This module has what a server needs
//! beside that: registered steps, flows assembled from them, delivery of results, and recovery.

mod begin;
mod deliver;
mod host;
mod recover;
mod registered;

pub use begin::{BeginError, Begun, Wanted};
pub use host::{HearLeft, Host, Settings, WatchFlows};
pub use recover::RecoveredFlows;
pub use registered::{PlanError, PlannedFlow};
