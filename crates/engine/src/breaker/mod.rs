//! Breakers: one for each target, shared by all jobs of a store.
//!
//! A breaker is an aggregate outside of every job. Its journal holds facts: results of attempts, probes,
//! actions of operators. Facts are appended without a version, so jobs and processes never conflict; the
//! state of a breaker is the fold of its facts in journal order.

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
