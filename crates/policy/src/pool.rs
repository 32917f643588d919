//! The retry pool of a job: it bounds the retries of all items together.
//!
//! It has two limits, the job's total and each item's share of it. Every scheduled retry is charged one
//! unit, and no unit is ever returned. The pool only counts: the caller decides on the order of charges and
//! protects the count between threads and against crashes.

use core::fmt;

use crate::reason::Reason;

/// The operator's defaults and maxima for the pools of all jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct PoolCeilings {
    /// The total of a job that sets none.
    pub default_total: u32,
    /// The largest total of any job.
    pub max_total: u32,
    /// An item's share in a job that sets none.
    pub default_per_item: u32,
    /// The largest share of any item.
    pub max_per_item: u32,
}

impl PoolCeilings {
    /// 20 retries for a job, 50 at most; 3 for an item, 5 at most.
    pub const DEFAULT: Self = Self { default_total: 20, max_total: 50, default_per_item: 3, max_per_item: 5 };
}

impl Default for PoolCeilings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The two limits of a pool, within the ceilings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct PoolLimits {
    /// Retries for the whole job.
    pub total: u32,
    /// Retries for each item.
    pub per_item: u32,
}

impl PoolLimits {
    /// The limits of a job that sets these numbers, within the ceilings. 0 means the default.
    #[must_use]
    pub fn effective(total: u32, per_item: u32, ceilings: &PoolCeilings) -> Self {
        let or_default = |asked, default| if asked == 0 { default } else { asked };
        let total = or_default(total, ceilings.default_total).min(ceilings.max_total);
        let per_item = or_default(per_item, ceilings.default_per_item).min(ceilings.max_per_item).min(total);
        Self { total, per_item }
    }
}

/// A pool: its limits, and how much of it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Pool {
    /// The limits of the pool.
    pub limits: PoolLimits,
    /// Units charged so far, by all items in all rounds.
    pub consumed: u32,
}

impl Pool {
    /// Creates an unused pool.
    #[must_use]
    pub const fn new(limits: PoolLimits) -> Self {
        Self { limits, consumed: 0 }
    }

    /// The balance of an item that has taken `item_consumed` units.
    #[must_use]
    pub const fn balance(&self, item_consumed: u32) -> PoolBalance {
        PoolBalance {
            total: self.limits.total,
            consumed: self.consumed,
            per_item: self.limits.per_item,
            item_consumed,
        }
    }

    /// Charges one unit to an item if both limits allow it.
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

    /// Adds to the total, up to `max_total`, and returns the units that were added.
    pub fn top_up(&mut self, units: u32, ceilings: &PoolCeilings) -> u32 {
        let before = self.limits.total;
        let wished = before.saturating_add(units).min(ceilings.max_total);
        // A ceiling that was lowered since does not take granted units away.
        self.limits.total = wished.max(before);
        self.limits.total.saturating_sub(before)
    }
}

/// The state of a job's pool for one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct PoolBalance {
    /// Retries for the whole job.
    pub total: u32,
    /// How many of those retries are used.
    pub consumed: u32,
    /// Retries for this item.
    pub per_item: u32,
    /// How many of those retries are used.
    pub item_consumed: u32,
}

impl PoolBalance {
    /// The limit that refuses a further retry, if any; the job's comes before the item's.
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

impl fmt::Display for PoolBalance {
    /// The refusal with its numbers, such as `job_budget_exhausted (7/7)`, or else what is used.
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
            let limits = PoolLimits::effective(total, per_item, &PoolCeilings::DEFAULT);
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
        assert_eq!(pool.top_up(3, &PoolCeilings::DEFAULT), 3);
        assert_eq!(pool.top_up(u32::MAX, &PoolCeilings::DEFAULT), 2);
        let lowered = PoolCeilings { max_total: 10, ..PoolCeilings::DEFAULT };
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
