//! Breakers: one for each target, shared by all jobs of a store.
//!
//! A breaker is an aggregate of its own, outside of every job. Its journal holds facts: the results of
//! attempts, probes, what an operator did by hand. Facts are appended without a version, so jobs and
//! processes never conflict; the state of a breaker is the fold of its facts in journal order.
//! [`AdmissionControl`] answers for all jobs of a process whether an attempt may start.

mod admission;
mod gate;
mod journal;
mod known;
mod record;
mod release;
mod report;
mod state;
mod stored;
mod waiting;

pub use admission::AdmissionControl;
pub use gate::Gate;
pub use journal::{BreakerJournal, HISTORY};
pub use known::{Offer, Openness, Prober};
pub use record::{BreakerRecord, Fact};
pub use report::{BreakerReport, Signal};
pub use state::{BreakerChange, BreakerState, Change, Probe};
