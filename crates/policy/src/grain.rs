//! The resolution to which a calculated or drawn delay is rounded.
//!
//! A delay that grows from whole milliseconds is rounded to milliseconds once it has ten of them. No timer
//! is more precise, and the printed delays add up to the printed sum. Shorter delays, and those that grow
//! from a finer duration, are rounded to microseconds or nanoseconds. A configured duration is never rounded.

pub(crate) const MICRO: u64 = 1_000;
pub(crate) const MILLI: u64 = 1_000_000;
/// A delay is rounded to a step once it is at least this many steps long.
const MIN_STEPS: u64 = 10;
/// Delays from this length on are rounded to milliseconds.
pub(crate) const COARSE: u64 = MIN_STEPS * MILLI;
/// Delays from this length on are rounded to microseconds.
pub(crate) const FINE: u64 = MIN_STEPS * MICRO;

/// The largest step of which the duration is a multiple.
const fn made_of(nanos: u64) -> u64 {
    if nanos.is_multiple_of(MILLI) {
        MILLI
    } else if nanos.is_multiple_of(MICRO) {
        MICRO
    } else {
        1
    }
}

/// The step to which a delay of this length is rounded.
const fn step(nanos: u64) -> u64 {
    if nanos >= COARSE {
        MILLI
    } else if nanos >= FINE {
        MICRO
    } else {
        1
    }
}

/// Rounds a delay that has grown from `first` to the nearest step, saturating.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "float to integer casts saturate, and a step is below 2^53"
)]
pub(crate) fn round(first: u64, grown: f64) -> u64 {
    let (size, origin) = (step(grown as u64), made_of(first));
    let step = if size < origin { size } else { origin };
    ((grown / step as f64).round() as u64).saturating_mul(step)
}
