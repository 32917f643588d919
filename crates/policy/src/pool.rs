//! One number of retries for a whole job, so that many items failing together are not a storm.
//!
//! Two limits: the job's total, and each item's share of it. The pool is charged one unit with
//! every retry that is scheduled, for good: nothing is ever given back. It counts; who asks, in
//! which order, and how the count is kept safe between threads or crashes is the caller's business.

use core::fmt;

use crate::reason::Reason;

/// What the operator allows and assumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Ceilings {
    /// The total of a job that asks for nothing.
    pub default_total: u32,
    /// The largest total any job gets.
    pub max_total: u32,
    /// An item's share if the job asks for nothing.
    pub default_per_item: u32,
    /// The largest share any item gets.
    pub max_per_item: u32,
}

impl Ceilings {
    /// 20 retries a job, 50 at most; 3 an item, 5 at most.
    pub const DEFAULT: Self = Self { default_total: 20, max_total: 50, default_per_item: 3, max_per_item: 5 };
}

impl Default for Ceilings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The two limits of a pool, clamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct PoolLimits {
    /// Retries for the whole job.
    pub total: u32,
    /// Retries for any one item.
    pub per_item: u32,
}

impl PoolLimits {
    /// What a request comes to under these ceilings. 0 asks for the default.
    #[must_use]
    pub fn effective(total: u32, per_item: u32, ceilings: &Ceilings) -> Self {
        let or_default = |asked, default| if asked == 0 { default } else { asked };
        let total = or_default(total, ceilings.default_total).min(ceilings.max_total);
        let per_item = or_default(per_item, ceilings.default_per_item).min(ceilings.max_per_item).min(total);
        Self { total, per_item }
    }
}

/// A pool and how much of it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Pool {
    /// Its limits.
    pub limits: PoolLimits,
    /// Units charged so far, by all items in all rounds.
    pub consumed: u32,
}

impl Pool {
    /// A pool of which nothing is used.
    #[must_use]
    pub const fn new(limits: PoolLimits) -> Self {
        Self { limits, consumed: 0 }
    }

    /// Where the pool stands for an item that has taken `item_consumed` units of it.
    #[must_use]
    pub const fn balance(&self, item_consumed: u32) -> Balance {
        Balance {
            total: self.limits.total,
            consumed: self.consumed,
            per_item: self.limits.per_item,
            item_consumed,
        }
    }

    /// Takes one unit for an item, if both limits allow it.
    ///
    /// # Errors
    /// The limit that refuses; nothing was charged.
    pub fn charge(&mut self, item_consumed: &mut u32) -> Result<(), Reason> {
        if let Some(reason) = self.balance(*item_consumed).refuses() {
            Err(reason)
        } else {
            self.consumed = self.consumed.saturating_add(1);
            *item_consumed = item_consumed.saturating_add(1);
            Ok(())
        }
    }

    /// Adds to the total, which `max_total` still bounds. Gives the units really added.
    pub fn top_up(&mut self, units: u32, ceilings: &Ceilings) -> u32 {
        let before = self.limits.total;
        let wished = before.saturating_add(units).min(ceilings.max_total);
        // An operator who has lowered the ceiling since does not take away what was granted.
        self.limits.total = wished.max(before);
        self.limits.total.saturating_sub(before)
    }
}

/// The standing of one item with its job's pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Balance {
    /// Retries for the whole job.
    pub total: u32,
    /// How many of them are used.
    pub consumed: u32,
    /// Retries for this item.
    pub per_item: u32,
    /// How many of them are used.
    pub item_consumed: u32,
}

impl Balance {
    /// The limit that allows no further retry, the job's before the item's.
    #[must_use]
    pub const fn refuses(&self) -> Option<Reason> {
        if self.consumed >= self.total {
            Some(Reason::JobBudgetExhausted)
        } else if self.item_consumed >= self.per_item {
            Some(Reason::WorkflowBudgetExhausted)
        } else {
            None
        }
    }
}

impl fmt::Display for Balance {
    /// The refusal with its numbers, `job_budget_exhausted (7/7)`; or what is left.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (used, of) = match self.refuses() {
            Some(Reason::WorkflowBudgetExhausted) => (self.item_consumed, self.per_item),
            _ => (self.consumed, self.total),
        };
        match self.refuses() {
            Some(reason) => write!(f, "{reason} ({used}/{of})"),
            None => {
                write!(f, "{used} of {of} used, {} of {} by this item", self.item_consumed, self.per_item)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_request_is_clamped_to_what_the_operator_allows() {
        let effective = |total, per_item| {
            let limits = PoolLimits::effective(total, per_item, &Ceilings::DEFAULT);
            (limits.total, limits.per_item)
        };
        assert_eq!(effective(0, 0), (20, 3), "0 asks for the default");
        assert_eq!(effective(7, 2), (7, 2));
        assert_eq!(effective(1000, 1000), (50, 5), "the ceilings");
        assert_eq!(effective(2, 5), (2, 2), "no share exceeds the total");
        assert_eq!(effective(2, 0), (2, 2), "nor does a default share");
    }

    #[test]
    fn an_empty_pool_is_the_reason_before_a_used_up_share() {
        let limits = PoolLimits { total: 7, per_item: 3 };
        let balance = |consumed, item_consumed| Pool { limits, consumed }.balance(item_consumed).to_string();
        assert_eq!(balance(7, 3), "job_budget_exhausted (7/7)");
        assert_eq!(balance(6, 3), "workflow_budget_exhausted (3/3)");
        assert_eq!(balance(6, 2), "6 of 7 used, 2 of 3 by this item");
    }

    #[test]
    fn a_top_up_stops_at_the_operators_maximum_and_never_takes_away() {
        let mut pool = Pool::new(PoolLimits { total: 45, per_item: 3 });
        assert_eq!(pool.top_up(3, &Ceilings::DEFAULT), 3);
        assert_eq!(pool.top_up(u32::MAX, &Ceilings::DEFAULT), 2);
        let lowered = Ceilings { max_total: 10, ..Ceilings::DEFAULT };
        assert_eq!((pool.top_up(1, &lowered), pool.limits.total), (0, 50));
    }

    proptest! {
        #[test]
        fn no_order_of_charges_passes_a_limit(
            total in 0_u32..40, per_item in 0_u32..10,
            asks in prop::collection::vec(0_usize..8, 0..200),
        ) {
            let mut pool = Pool::new(PoolLimits { total, per_item });
            let mut items = [0_u32; 8];
            for item in asks {
                let before = (pool.consumed, items[item]);
                let granted = pool.charge(&mut items[item]).is_ok();
                prop_assert_eq!(granted, before.0 < total && before.1 < per_item);
                let unit = u32::from(granted);
                prop_assert_eq!((pool.consumed, items[item]), (before.0 + unit, before.1 + unit));
            }
            prop_assert_eq!(pool.consumed, items.iter().sum::<u32>());
            prop_assert!(pool.consumed <= total && items.iter().all(|&n| n <= per_item));
        }
    }
}
