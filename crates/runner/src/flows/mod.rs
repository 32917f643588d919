//! Many flows in one process: begun on request, resumed when the process starts.
//!
//! A flow is a job like any other, and [`crate::drive::EventLoop`] runs it. This module adds what a server
//! needs: registered steps, flows assembled from them, delivery of results, and recovery.

mod begin;
mod host;
mod recover;

pub use begin::{BeginError, BegunFlow, FlowSubmission, PlanError, PlannedFlow};
pub use host::{FlowHost, HostSettings, OnFlowLeft, WatchFlows};
pub use recover::RecoveredFlows;
