//! The grain of a delay: the unit to which a computed or drawn delay is rounded.
//!
//! A delay that grows from whole milliseconds is rounded to milliseconds once it has ten of them. No timer
//! is more precise, and the printed delays add up to the printed sum. Shorter delays, and those that grow
//! from a finer duration, are rounded to microseconds or nanoseconds. A configured duration is never rounded.

pub(crate) const MICRO: u64 = 1_000;
pub(crate) const MILLI: u64 = 1_000_000;
/// A delay is rounded to a grain once it is at least this many grains long.
const MIN_GRAINS: u64 = 10;
/// Delays from this length on are rounded to milliseconds.
pub(crate) const MILLIS_FROM: u64 = MIN_GRAINS * MILLI;
/// Delays from this length on are rounded to microseconds.
pub(crate) const MICROS_FROM: u64 = MIN_GRAINS * MICRO;

/// The largest grain of which the duration is a multiple.
const fn largest_divisor(nanos: u64) -> u64 {
    if nanos.is_multiple_of(MILLI) {
        MILLI
    } else if nanos.is_multiple_of(MICRO) {
        MICRO
    } else {
        1
    }
}

/// The grain to which a delay of this length is rounded.
const fn grain_of(nanos: u64) -> u64 {
    if nanos >= MILLIS_FROM {
        MILLI
    } else if nanos >= MICROS_FROM {
        MICRO
    } else {
        1
    }
}

/// Rounds a delay that has grown from `first` to the nearest grain, saturating.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "float to integer casts saturate, and a grain is below 2^53"
)]
pub(crate) fn round(first: u64, grown: f64) -> u64 {
    let (size, origin) = (grain_of(grown as u64), largest_divisor(first));
    let grain = if size < origin { size } else { origin };
    ((grown / grain as f64).round() as u64).saturating_mul(grain)
}
