//! A retry pool that concurrent calls share.

use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use crate::pool::{Pool, PoolBalance, PoolLimits};
use crate::reason::Reason;

/// Limits the retries of all calls together, and of each call. A clone is the same pool.
#[derive(Clone, Debug)]
pub struct SharedPool(Arc<PoolCounters>);

#[derive(Debug)]
struct PoolCounters {
    total: AtomicU32,
    consumed: AtomicU32,
    per_call: u32,
}

// Every operation concerns one counter and publishes no other memory.
const ANY_ORDER: Ordering = Ordering::Relaxed;

impl SharedPool {
    /// Creates a pool of `total` retries, of which one call may take at most `per_call`.
    #[must_use]
    pub fn new(total: u32, per_call: u32) -> Self {
        Self::with(PoolLimits { total, per_item: per_call })
    }

    /// Creates an unused pool with these limits.
    #[must_use]
    pub fn with(limits: PoolLimits) -> Self {
        Self(Arc::new(PoolCounters {
            total: AtomicU32::new(limits.total),
            consumed: AtomicU32::new(0),
            per_call: limits.per_item,
        }))
    }

    /// Restores a pool from [`SharedPool::saved`].
    #[must_use]
    pub fn restored(pool: Pool) -> Self {
        let shared = Self::with(pool.limits);
        shared.0.consumed.store(pool.consumed, ANY_ORDER);
        shared
    }

    /// The whole state, for saving.
    #[must_use]
    pub fn saved(&self) -> Pool {
        let balance = self.balance(0);
        Pool {
            limits: PoolLimits { total: balance.total, per_item: balance.per_item },
            consumed: balance.consumed,
        }
    }

    /// The balance of a call that has taken `call_consumed` retries from the pool.
    #[must_use]
    pub fn balance(&self, call_consumed: u32) -> PoolBalance {
        PoolBalance {
            total: self.0.total.load(ANY_ORDER),
            consumed: self.0.consumed.load(ANY_ORDER),
            per_item: self.0.per_call,
            item_consumed: call_consumed,
        }
    }

    /// Takes one retry, if both limits allow it.
    ///
    /// # Errors
    /// The limit that refuses; nothing was taken.
    #[inline]
    pub fn charge(&self, call_consumed: u32) -> Result<(), Reason> {
        let mut balance = self.balance(call_consumed);
        loop {
            if let Some(reason) = balance.refuses() {
                return Err(reason);
            }
            let taken = balance.consumed.saturating_add(1);
            let counter = &self.0.consumed;
            match counter.compare_exchange_weak(balance.consumed, taken, ANY_ORDER, ANY_ORDER) {
                Ok(_) => return Ok(()),
                Err(seen) => balance.consumed = seen,
            }
        }
    }

    /// Adds to the total. A long-running service calls this periodically.
    pub fn top_up(&self, units: u32) {
        let more = |total: u32| Some(total.saturating_add(units));
        // `more` never returns `None`, so the update cannot fail.
        let _ = self.0.total.fetch_update(ANY_ORDER, ANY_ORDER, more);
    }
}
