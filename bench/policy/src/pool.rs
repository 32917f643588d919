//! Taking one retry from a budget that many calls share.
//!
//! An operator tops up Undaunted's pool; tower's budget is refilled by every deposited request, which expires
//! after some time. So there are two groups: taking a retry alone, and taking together with refilling. Every
//! budget is large enough to grant each request, because a refusal would be cheaper. The other peers have no
//! budget.

use std::hint::black_box;
use std::time::Duration;

use tower::retry::budget::{Budget, TpsBudget};
use undaunted_policy::retry::SharedPool;
use undaunted_policy::{Pool, PoolLimits};

use crate::contestant::{Contestant, Group, Role, Target, repeat};

const LARGE: PoolLimits = PoolLimits { total: u32::MAX, per_item: u32::MAX };

pub(crate) fn check() -> Group {
    Group {
        name: "pool, check",
        about: "taking one retry from a shared budget that is not used up",
        target: Some(Target::OfCheapestPeer(0.5)),
        left_out: "the other peers have no shared budget",
        contestants: vec![
            Contestant::new(Role::Ours, "undaunted", "`SharedPool::charge`", |n| {
                let pool = SharedPool::with(LARGE);
                repeat(n, || black_box(&pool).charge(black_box(1)))
            }),
            Contestant::new(
                Role::Variant,
                "undaunted, one owner",
                "`Pool::charge`, the same count without atomic operations",
                |n| {
                    let mut pool = Pool::new(LARGE);
                    let mut taken = 0;
                    repeat(n, || black_box(&mut pool).charge(black_box(&mut taken)))
                },
            ),
            Contestant::new(Role::Peer, "tower", "`TpsBudget::withdraw` from a large reserve", |n| {
                let budget = tower_budget();
                repeat(n, || black_box(&budget).withdraw())
            }),
        ],
    }
}

pub(crate) fn refill() -> Group {
    Group {
        name: "pool, refill and check",
        about: "putting one retry into a shared budget and taking one",
        target: Some(Target::OfCheapestPeer(0.5)),
        left_out: "the other peers have no shared budget",
        contestants: vec![
            Contestant::new(Role::Ours, "undaunted", "`SharedPool::top_up` and `SharedPool::charge`", |n| {
                let pool = SharedPool::new(1_000, u32::MAX);
                repeat(n, || {
                    black_box(&pool).top_up(black_box(1));
                    black_box(&pool).charge(black_box(1))
                })
            }),
            Contestant::new(Role::Peer, "tower", "`TpsBudget::deposit` and `TpsBudget::withdraw`", |n| {
                let budget = tower_budget();
                repeat(n, || {
                    black_box(&budget).deposit();
                    black_box(&budget).withdraw()
                })
            }),
        ],
    }
}

/// One retry for every request, and a reserve that no measurement uses up.
fn tower_budget() -> TpsBudget {
    TpsBudget::new(Duration::from_secs(10), 1_000_000_000, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_budget_grants_each_request() {
        let pool = SharedPool::with(LARGE);
        let budget = tower_budget();
        for _ in 0..1_000_000 {
            assert_eq!(pool.charge(1), Ok(()));
            assert!(budget.withdraw());
        }
    }
}
