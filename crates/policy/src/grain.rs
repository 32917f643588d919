//! The resolution of a delay that was calculated or drawn.
//!
//! A product of floating point numbers or a random draw has to be rounded to something. Ten
//! milliseconds and more are whole milliseconds, which is as fine as a timer wheel gets and makes
//! the sum of printed delays equal the printed sum; shorter delays are whole microseconds, and
//! below ten of those whole nanoseconds. Durations that a person wrote down are never rounded.

const MICRO: u64 = 1_000;
const MILLI: u64 = 1_000_000;

/// The step between neighbouring delays of this size, in nanoseconds.
pub(crate) const fn grain(nanos: u64) -> u64 {
    if nanos >= 10 * MILLI {
        MILLI
    } else if nanos >= 10 * MICRO {
        MICRO
    } else {
        1
    }
}

/// `nanos` rounded to the nearest step of its size; too large to represent is the largest.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "float to integer casts saturate, and a step is below 2^53"
)]
pub(crate) fn round(nanos: f64) -> u64 {
    let step = grain(nanos as u64);
    ((nanos / step as f64).round() as u64).saturating_mul(step)
}
