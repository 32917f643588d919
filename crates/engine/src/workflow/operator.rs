//! What the operator of a machine has settled for every workflow on it.
//!
//! The values come from environment variables, which are not read here: whoever asks passes them in.

use undaunted_policy::shape::WorkDefaults;
use undaunted_policy::{Ceilings, CompletionRule};

/// The operator's settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a setting on its own, named where it is given"
)]
pub struct Operator {
    /// Limits on the pools that workflows ask for.
    pub ceilings: Ceilings,
    /// Whether a workflow that asks for no pool has one all the same.
    pub pool_for_all: bool,
    /// How the steps of a flow are retried that do not say.
    pub work: WorkDefaults,
    /// What a step waits for that does not say.
    pub completion: CompletionRule,
    /// Whether the result of a job is brought up to date with what comes after a step was complete.
    pub late_results_count: bool,
    /// Whether HTTP requests that do not say have a breaker for the origin they go to.
    pub breaker_per_origin: bool,
    /// Whether whoever runs the workflows has functions that commands can name.
    pub has_functions: bool,
}
