//! A state saved to shorten recovery.
//!
//! A snapshot repeats what the journal says: one that is missing, damaged or ahead of its journal costs
//! time and nothing else.

use crate::version::Version;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The version of the last record it includes.
    pub at: Version,
    /// The state, in the caller's encoding.
    pub bytes: Vec<u8>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundSnapshot {
    pub latest: Option<Snapshot>,
    /// Why later snapshots could not be used, one sentence each. To be reported, not to stop recovery.
    pub ignored: Vec<String>,
}
