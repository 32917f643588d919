//! The clock of a job.
//!
//! The wall clock is read once, when a [`Clock`] is created; from then on the clock follows the uptime of the
//! machine, including sleep. So setting the wall clock while a job runs neither skips nor stretches a wait.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use undaunted_policy::Timestamp;

use crate::Machine;

#[derive(Clone, Copy, Debug)]
pub struct Clock {
    set_to: Timestamp,
    set_at: Duration,
}

impl Clock {
    pub fn set() -> Self {
        let (set_to, set_at) = clocks();
        Self { set_to, set_at }
    }

    pub(crate) fn set_by(machine: &dyn Machine) -> Self {
        let (set_to, set_at) = machine.clocks();
        Self { set_to, set_at }
    }

    pub fn now(&self) -> Timestamp {
        self.at(uptime())
    }

    pub(crate) const fn at(&self, uptime: Duration) -> Timestamp {
        self.set_to.after(uptime.saturating_sub(self.set_at))
    }
}

/// The wall clock and the uptime at the same instant. Read again if the thread was preempted between
/// the two; otherwise the clock would lag for as long as the process lives.
pub(crate) fn clocks() -> (Timestamp, Duration) {
    /// More than two clock reads take.
    const NEAR: Duration = Duration::from_micros(100);
    let mut tries = 0_u32;
    loop {
        let before = uptime();
        let now = shifted(wall(SystemTime::now()));
        let after = uptime();
        tries = tries.saturating_add(1);
        if after.saturating_sub(before) <= NEAR || tries > 100 {
            return (now, after);
        }
    }
}

pub(crate) fn wall(at: SystemTime) -> Timestamp {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::ZERO.after(since)
}

/// A test may shift the wall clock by some seconds.
#[cfg(feature = "failpoints")]
fn shifted(at: Timestamp) -> Timestamp {
    let step = std::env::var("UNDAUNTED_TEST_CLOCK").unwrap_or_default();
    match step.parse::<i64>() {
        Ok(seconds) if seconds < 0 => Timestamp::ZERO
            .after(at.since(Timestamp::ZERO.after(Duration::from_secs(seconds.unsigned_abs())))),
        Ok(seconds) => at.after(Duration::from_secs(seconds.unsigned_abs())),
        Err(_) => at,
    }
}

#[cfg(not(feature = "failpoints"))]
const fn shifted(at: Timestamp) -> Timestamp {
    at
}

/// The time since boot, including sleep.
pub(crate) fn uptime() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}
