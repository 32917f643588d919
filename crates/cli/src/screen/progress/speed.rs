//! The speed of a job over the last half minute.
//!
//! Pure: the caller passes the time. Older samples are dropped, so that an estimate follows the present speed.

use std::collections::VecDeque;
use std::time::Duration;

use undaunted_policy::Timestamp;

use crate::screen::duration::millis;

const WINDOW: Duration = Duration::from_secs(30);
/// The shortest time a speed is computed from.
const LEAST: Duration = Duration::from_secs(1);
/// The number of items settled within the window from which only the window counts.
const ENOUGH: u64 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpeedSample {
    pub(super) at: Timestamp,
    pub(super) attempts: u64,
    pub(super) settled: u64,
}

#[derive(Debug)]
pub(super) struct Speed {
    first: SpeedSample,
    recent: VecDeque<SpeedSample>,
}

impl Speed {
    pub(super) fn new(first: SpeedSample) -> Self {
        Self { first, recent: VecDeque::from([first]) }
    }

    /// Keeps one sample a second.
    pub(super) fn note(&mut self, sample: SpeedSample) {
        let last = self.recent.back().unwrap_or(&self.first);
        if sample.at.since(last.at) >= LEAST {
            self.recent.push_back(sample);
        }
        while self.recent.len() > 1
            && let Some(oldest) = self.recent.front()
            && sample.at.since(oldest.at) > WINDOW
        {
            self.recent.pop_front();
        }
    }

    pub(super) fn so_far(&self, now: Timestamp) -> Duration {
        now.since(self.first.at)
    }

    pub(super) fn attempts_in_ten_seconds(&self, now: SpeedSample) -> Option<u64> {
        let from = self.oldest();
        let passed = millis(now.at.since(from.at).max(Duration::from_millis(1)));
        let made = now.attempts.saturating_sub(from.attempts);
        (now.at.since(from.at) >= LEAST).then(|| made.saturating_mul(10_000) / passed)
    }

    pub(super) fn time_for(&self, items: u64, now: SpeedSample) -> Option<Duration> {
        let recent = self.oldest();
        let enough = now.settled.saturating_sub(recent.settled) >= ENOUGH;
        let from = if enough { recent } else { &self.first };
        let passed = now.at.since(from.at);
        let done = now.settled.saturating_sub(from.settled);
        if passed < LEAST.saturating_mul(2) || done == 0 {
            return None;
        }
        let millis = millis(passed).saturating_mul(items) / done;
        Some(Duration::from_millis(millis))
    }

    fn oldest(&self) -> &SpeedSample {
        self.recent.front().unwrap_or(&self.first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(second: u64, attempts: u64, settled: u64) -> SpeedSample {
        SpeedSample { at: Timestamp::from_millis(second.saturating_mul(1000)), attempts, settled }
    }

    #[test]
    fn a_speed_is_that_of_the_last_half_minute() {
        let mut speed = Speed::new(sample(0, 0, 0));
        for second in 1..=100 {
            speed.note(sample(second, second, second));
        }
        for second in 101..=131 {
            speed.note(sample(second, 100 + 10 * (second - 100), 100 + 2 * (second - 100)));
        }
        let now = sample(131, 410, 162);
        assert_eq!(speed.attempts_in_ten_seconds(now), Some(100));
        assert_eq!(speed.time_for(60, now), Some(Duration::from_secs(30)));
        assert!(speed.recent.len() <= 31);
    }

    #[test]
    fn a_slow_job_is_judged_by_its_whole_run() {
        let mut speed = Speed::new(sample(0, 7, 7));
        for second in 1..=120 {
            speed.note(sample(second, 7 + second / 40, 7 + second / 40));
        }
        let left = speed.time_for(2, sample(120, 10, 10));
        assert_eq!(left, Some(Duration::from_secs(80)));
    }

    #[test]
    fn nothing_is_said_before_there_is_anything_to_say() {
        let speed = Speed::new(sample(50, 1000, 1000));
        assert_eq!(speed.attempts_in_ten_seconds(sample(50, 1001, 1001)), None);
        assert_eq!(speed.time_for(5, sample(51, 1003, 1003)), None);
        assert_eq!(speed.time_for(5, sample(59, 1003, 1000)), None);
    }
}
