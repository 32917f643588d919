//! Breakers: one for each target, shared by all jobs of a store.
//!
//! A breaker is an aggregate outside of every job. Its journal holds facts: results of attempts, probes,
//! actions of operators. Facts are appended without a version, so jobs and processes never conflict; the
//! state of a breaker is the fold of its facts in journal order. The breaker itself (when it opens and
//! closes) is `undaunted_policy::Breaker`; here it is shared, stored, and asked.

mod admission;
mod journal;
mod record;
mod release;
mod report;
mod state;
mod stored;
mod tracked;
mod waiting;

pub use admission::AdmissionControl;
pub use journal::{BreakerJournal, HISTORY};
pub use record::{BreakerFact, BreakerRecord};
pub use report::{BreakerReport, TargetSignal};
pub use state::{BreakerChange, BreakerChangeKind, BreakerState, Probe};
pub use tracked::{ProbeOffer, ProbeOwner, StartAllowance};
pub use waiting::BreakerAnswer;
