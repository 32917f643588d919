//! The operations whose instructions are counted.

use crate::{Failure, attempts, policy};

pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// The rounds of the first run; the second run has twice as many.
    pub(crate) rounds: u32,
    pub(crate) run: fn(u32) -> Result<(), Failure>,
}

pub(crate) const CASES: [Case; 9] = [
    Case { name: "a delay with jitter", rounds: 10_000, run: policy::delay },
    Case { name: "a verdict with every limit", rounds: 10_000, run: policy::verdict },
    Case { name: "decide and apply: an attempt that succeeds", rounds: 2_000, run: attempts::succeed },
    Case { name: "decide and apply: an attempt that fails and waits", rounds: 2_000, run: attempts::fail },
    Case { name: "the task of an attempt", rounds: 2_000, run: attempts::task_of },
    Case { name: "encode the records of an attempt that succeeds", rounds: 2_000, run: attempts::encode },
    Case { name: "decode the records of an attempt that succeeds", rounds: 2_000, run: attempts::decode },
    Case {
        name: "decode the records of an attempt that fails and waits",
        rounds: 2_000,
        run: attempts::decode_failed,
    },
    Case {
        name: "apply the records of an attempt that fails and waits",
        rounds: 2_000,
        run: attempts::apply,
    },
];

impl Case {
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        CASES.iter().find(|case| case.name == name)
    }
}
