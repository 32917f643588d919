//! The operator's settings for every workflow on a machine.
//!
//! They come from environment variables, which the caller reads.

use undaunted_policy::spelling::WorkDefaults;
use undaunted_policy::{Ceilings, CompletionRule};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting on its own, named where it is given")]
pub struct Operator {
    pub ceilings: Ceilings,
    /// Whether a workflow that asks for no pool gets one.
    pub pool_for_all: bool,
    /// For steps of a flow without retry settings.
    pub work: WorkDefaults,
    /// For steps without a completion rule.
    pub completion: CompletionRule,
    /// Whether a result that comes after its step was complete still updates the job's result.
    pub late_results_count: bool,
    /// Whether requests without a `breaker` key get the breaker of their origin.
    pub breaker_per_origin: bool,
    /// Whether the embedding program has functions that commands can name.
    pub has_functions: bool,
}
