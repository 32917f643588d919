//! Mistakes made on purpose, one at a time: a test of the tests.
//!
//! Engine and runner make them where the code says `mutant::is(Mutant::…)`. Without the feature `mutants`
//! that is always false and no mistake is compiled; with it, only the thread that has chosen one makes it.

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// One retry more than is allowed.
    ExtraAttempt,
    /// Jitter that does not follow from the seed.
    UnseededJitter,
    /// A delay budget that is never used up.
    BudgetIgnored,
    /// An open breaker lets everything through.
    BreakerIgnored,
    /// After somebody has gone on with a job, retries are charged to no pool.
    PoolIgnoredAfterResume,
    /// Waits begin anew when somebody goes on with a job.
    WaitRestartedOnResume,
    /// A retry starts a tenth of a second before it is due.
    EarlyRetry,
    /// A report about an attempt that is over counts for another one.
    LateReportCounted,
    /// A dead letter is not counted.
    DeadLetterNotCounted,
    /// What is decided is done before it is on the disk.
    ActsBeforeCommit,
    /// The keeper forgets the end of an attempt before it is on the disk.
    ResultDiscardedBeforeCommit,
    /// A write that failed is taken for one that did not.
    FailedWriteIgnored,
    /// An attempt whose fate nobody knows is begun once more.
    UnknownAttemptRestarted,
    /// Whatever a keeper still runs is taken for gone after a takeover.
    TakeoverLosesRunning,
    /// A command asks the breaker of the request that its item has sent before.
    WrongBreaker,
    /// A keeper is told to forget an attempt whose end is being written.
    ResultDiscardedDuringCommit,
    /// Whoever leaves begins no command that gives items, and waits for it.
    NeverSuspends,
    /// A result that was taken while nobody ran the job is thrown away.
    OfflineResultLost,
    /// The result of an attempt is not told to its breaker.
    BreakerReportLost,
    /// A process starts what it knows to be held, because its own facts are not on the disk yet.
    UnwrittenFactsIgnored,
    /// A process probes without the claim.
    ProbeWithoutClaim,
    /// A hold is charged to the pool.
    HoldCharged,
}

impl Mutant {
    /// Those that were thought of.
    pub const HYPOTHETICAL: [Self; 18] = [
        Self::ExtraAttempt,
        Self::UnseededJitter,
        Self::BudgetIgnored,
        Self::BreakerIgnored,
        Self::PoolIgnoredAfterResume,
        Self::WaitRestartedOnResume,
        Self::EarlyRetry,
        Self::LateReportCounted,
        Self::DeadLetterNotCounted,
        Self::ActsBeforeCommit,
        Self::ResultDiscardedBeforeCommit,
        Self::FailedWriteIgnored,
        Self::UnknownAttemptRestarted,
        Self::TakeoverLosesRunning,
        Self::BreakerReportLost,
        Self::UnwrittenFactsIgnored,
        Self::ProbeWithoutClaim,
        Self::HoldCharged,
    ];

    /// Those that we have really made, and mended.
    pub const PAST_BUGS: [Self; 4] =
        [Self::WrongBreaker, Self::ResultDiscardedDuringCommit, Self::NeverSuspends, Self::OfflineResultLost];
}

#[cfg(feature = "mutants")]
mod chosen {
    use std::cell::Cell;

    use super::Mutant;

    thread_local! {
        static CHOSEN: Cell<Option<Mutant>> = const { Cell::new(None) };
        static DRAWN: Cell<u64> = const { Cell::new(0) };
    }

    /// From now on this thread makes this mistake, or none.
    pub fn choose(mutant: Option<Mutant>) {
        CHOSEN.set(mutant);
    }

    /// Whether this thread makes a mistake.
    #[must_use]
    pub fn is(mutant: Mutant) -> bool {
        CHOSEN.get() == Some(mutant)
    }

    /// A number that is another one each time.
    #[must_use]
    pub fn another() -> u64 {
        DRAWN.set(DRAWN.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        DRAWN.get()
    }
}

#[cfg(feature = "mutants")]
pub use chosen::{another, choose, is};

/// Whether a mistake is made: never.
#[cfg(not(feature = "mutants"))]
#[inline]
#[must_use]
pub const fn is(_: Mutant) -> bool {
    false
}

/// A number that nobody asks for.
#[cfg(not(feature = "mutants"))]
#[inline]
#[must_use]
pub const fn another() -> u64 {
    0
}
