//! The resolution of a delay that was calculated or drawn.
//!
//! A product of floating point numbers or a random draw has to be rounded to something. What grows
//! from whole milliseconds is whole milliseconds from ten of them on, which is as fine as a timer
//! wheel gets and makes the sum of printed delays equal the printed sum. Shorter delays, and those
//! that grow from something finer, are whole microseconds or nanoseconds. A duration that a person
//! wrote down is never rounded.

pub(crate) const MICRO: u64 = 1_000;
pub(crate) const MILLI: u64 = 1_000_000;
/// So many steps make it worth while to take only whole ones.
const ENOUGH: u64 = 10;
/// From here on delays are whole milliseconds.
pub(crate) const COARSE: u64 = ENOUGH * MILLI;
/// From here on they are whole microseconds.
pub(crate) const FINE: u64 = ENOUGH * MICRO;

/// The coarsest step that a duration is made of.
const fn made_of(nanos: u64) -> u64 {
    if nanos.is_multiple_of(MILLI) {
        MILLI
    } else if nanos.is_multiple_of(MICRO) {
        MICRO
    } else {
        1
    }
}

/// The step between neighbouring delays of this size.
const fn step(nanos: u64) -> u64 {
    if nanos >= COARSE {
        MILLI
    } else if nanos >= FINE {
        MICRO
    } else {
        1
    }
}

/// What `first` has grown to, rounded to the nearest step; too large to represent is the largest.
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
