//! Delays, by the table: computed, capped, spread.

use std::time::Duration;

use crate::simulate::case::{Backoff, Jitter};

use super::prediction::Range;
use super::terms::{Growth, Terms};

/// The shortest and the longest delay before retry `n`, counted from 1; equal without jitter.
pub(super) fn range(terms: &Terms, n: u32, previous: Option<Duration>) -> Range {
    let capped = computed(terms, n).min(terms.max_delay);
    let part = |percent: u32| capped.saturating_mul(percent).checked_div(100);
    match terms.jitter {
        Jitter::None | Jitter::Around(0) => rounded(capped),
        Jitter::Around(share) => Range {
            least: part(100_u32.saturating_sub(share)).unwrap_or_default(),
            most: part(100_u32.saturating_add(share)).unwrap_or(capped),
        },
        Jitter::Full => Range { least: Duration::ZERO, most: capped },
        Jitter::Equal => Range { least: part(50).unwrap_or_default(), most: capped },
        Jitter::Decorrelated => {
            // Between the first delay and three times the one before, capped last.
            let least = terms.initial_delay;
            let most = previous.unwrap_or(least).saturating_mul(3).max(least);
            Range { least: least.min(terms.max_delay), most: most.min(terms.max_delay) }
        }
    }
}

/// A broken number of milliseconds may be rounded to a whole one.
fn rounded(delay: Duration) -> Range {
    let whole = u64::try_from(delay.as_millis()).map_or(delay, Duration::from_millis);
    if whole == delay {
        return Range::exactly(delay);
    }
    Range { least: whole, most: whole.saturating_add(Duration::from_millis(1)) }
}

fn computed(terms: &Terms, n: u32) -> Duration {
    let first = terms.initial_delay;
    let before = n.saturating_sub(1);
    match &terms.growth {
        Growth::Multiples => first.saturating_mul(n),
        Growth::Of(Backoff::Fixed) => first,
        Growth::Of(Backoff::Linear(by)) => first.saturating_add(by.saturating_mul(before)),
        Growth::Of(Backoff::Exponential(halves)) => {
            let mut delay = first;
            for _ in 0..before {
                delay = delay.saturating_mul(*halves).checked_div(2).unwrap_or(delay);
            }
            delay
        }
        Growth::Of(Backoff::Fibonacci) => {
            let (mut this, mut next) = (1_u32, 1_u32);
            for _ in 0..before {
                (this, next) = (next, this.saturating_add(next));
            }
            first.saturating_mul(this)
        }
        Growth::Of(Backoff::Custom(delays)) => {
            let place = usize::try_from(before).unwrap_or(usize::MAX);
            delays.get(place).copied().unwrap_or(terms.max_delay)
        }
    }
}
