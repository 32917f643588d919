//! Deliberate faults, one at a time, to test whether the tests notice them.
//!
//! Engine and runner commit a fault where the code asks `mutant::is(Mutant::…)`. Without the feature
//! `mutants` the answer is a constant `false`, and no fault is compiled. With the feature, only the thread
//! that has chosen a fault commits it.

macro_rules! mutants {
    ($($(#[$about:meta])* $list:ident: $count:literal { $($(#[$doc:meta])* $name:ident,)* })*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Mutant {
            $($($(#[$doc])* $name,)*)*
        }

        #[cfg(feature = "mutants")]
        impl Mutant {
            $($(#[$about])* pub const $list: [Self; $count] = [$(Self::$name),*];)*
        }
    };
}

mutants! {
    /// Faults that could have been made.
    HYPOTHETICAL: 20 {
        /// A command gets one retry more than allowed.
        ExtraAttempt,
        /// Jitter does not follow from the seed.
        UnseededJitter,
        /// A delay budget is never used up.
        BudgetIgnored,
        /// An open breaker admits every attempt.
        BreakerIgnored,
        /// Retries of a resumed job are not charged to its pool.
        PoolIgnoredAfterResume,
        /// A resume starts every wait again.
        WaitRestartedOnResume,
        /// A retry starts a tenth of a second before it is due.
        EarlyRetry,
        /// A report about an ended attempt counts for another attempt.
        LateReportCounted,
        DeadLetterNotCounted,
        /// The runner acts on events before they are on disk.
        ActsBeforeCommit,
        /// The keeper discards the result of an attempt before it is on disk.
        ResultDiscardedBeforeCommit,
        /// A failed write counts as a successful one.
        FailedWriteIgnored,
        /// An attempt whose fate is unknown is begun a second time.
        UnknownAttemptRestarted,
        /// After a reconnect, the attempts that the keeper still runs count as vanished.
        ReconnectLosesRunning,
        /// The breaker does not receive the result of an attempt.
        BreakerReportLost,
        /// A process ignores its own breaker facts until they are on disk.
        UnwrittenFactsIgnored,
        /// A process probes without holding the probe claim.
        ProbeWithoutClaim,
        /// A hold is charged to the pool.
        HoldCharged,
        /// After a reconnect, every reserved start counts as not begun.
        ReservationBegunTwice,
        /// A job is cancelled, paused or left although the keeper may still begin reserved starts.
        ReservationNotWithdrawn,
    }
    /// Faults that were in the code once, and were fixed.
    PAST_BUGS: 4 {
        /// A command asks the breaker of the request that its item has sent before.
        WrongBreaker,
        /// The keeper discards the result of an attempt while its end is being written.
        ResultDiscardedDuringCommit,
        /// A suspending runner waits for an input command that it never begins.
        NeverSuspends,
        /// A webhook result that arrived while no process ran the job is lost.
        OfflineResultLost,
    }
}

/// Whether the current thread commits this fault: never, without the feature `mutants`.
#[cfg(not(feature = "mutants"))]
#[inline]
#[must_use]
pub const fn is(_: Mutant) -> bool {
    false
}

#[cfg(not(feature = "mutants"))]
#[inline]
#[must_use]
pub(crate) const fn another() -> u64 {
    0
}

#[cfg(feature = "mutants")]
pub(crate) use chosen::another;
#[cfg(feature = "mutants")]
pub use chosen::{choose, is};

#[cfg(feature = "mutants")]
mod chosen {
    use std::cell::Cell;

    use super::Mutant;

    thread_local! {
        static CHOSEN: Cell<Option<Mutant>> = const { Cell::new(None) };
        static DRAWN: Cell<u64> = const { Cell::new(0) };
    }

    /// Makes the current thread commit this fault from now on, or none.
    pub fn choose(mutant: Option<Mutant>) {
        CHOSEN.set(mutant);
    }

    #[must_use]
    pub fn is(mutant: Mutant) -> bool {
        CHOSEN.get() == Some(mutant)
    }

    /// A number that differs from call to call.
    #[must_use]
    pub(crate) fn another() -> u64 {
        DRAWN.set(DRAWN.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        DRAWN.get()
    }
}
