//! Durations as text: short enough for a column, exact enough to compare.

use std::time::Duration;

/// `850ms`, `1.25s`, `59.9s`, `1m32s`, `2h5m`, `3d4h`.
pub(super) fn short(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let parts = |large: u64, unit: &str, small: u64, lesser: &str| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{lesser}"),
    };
    match seconds {
        0 if duration.is_zero() => "0s".to_owned(),
        0 if duration < Duration::from_millis(1) => format!("{}µs", duration.as_micros()),
        0 => format!("{}ms", duration.as_millis()),
        1..60 => {
            let thousandths = format!("{:03}", duration.subsec_millis());
            let decimals = thousandths.trim_end_matches('0');
            let point = if decimals.is_empty() { "" } else { "." };
            format!("{seconds}{point}{decimals}s")
        }
        60..3600 => parts(seconds / 60, "m", seconds % 60, "s"),
        3600..86_400 => parts(seconds / 3600, "h", seconds % 3600 / 60, "m"),
        _ => parts(seconds / 86_400, "d", seconds % 86_400 / 3600, "h"),
    }
}

/// A measured time, in whole milliseconds.
pub(super) fn measured(duration: Duration) -> String {
    match millis(duration) {
        0 if !duration.is_zero() => "<1ms".to_owned(),
        millis => short(Duration::from_millis(millis)),
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_as_long_as_it_needs_to_be() {
        for (millis, text) in [
            (0, "0s"),
            (7, "7ms"),
            (850, "850ms"),
            (1000, "1s"),
            (1250, "1.25s"),
            (59_900, "59.9s"),
            (92_999, "1m32s"),
            (3_600_000, "1h"),
            (7_500_000, "2h5m"),
            (273_600_000, "3d4h"),
        ] {
            assert_eq!(short(Duration::from_millis(millis)), text);
        }
    }
}
