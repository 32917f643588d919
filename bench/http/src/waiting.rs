//! Flows that wait for a retry: what it takes to go on with them, and what they cost while they wait.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::flows::{Happened, Running, single};

/// How many threads begin flows.
const THREADS: u32 = 64;

/// How long they are watched while nothing happens.
const WATCHED: Duration = Duration::from_secs(10);

/// What the flows of a store cost a process that goes on with them.
pub(crate) struct Cost {
    /// Until the store is open.
    pub(crate) opened: Duration,
    /// Until every flow was looked at.
    pub(crate) looked_at: Duration,
    /// Until it is on the disk of every flow that it is gone on with.
    pub(crate) on_disk: Duration,
    /// Processor time for all that.
    pub(crate) worked: Duration,
    /// Kilobytes in memory afterwards.
    pub(crate) memory: u64,
    /// Processor time while nothing happened.
    pub(crate) idle: Duration,
}

/// Begins flows whose step has failed once and is tried again in an hour, and says how long that took.
/// Nobody suspends them: for the store it is as if this process had been killed.
/// So many of them fail at the same time: all of them call one origin, whose breaker hears of each.
pub(crate) fn leave(folder: &Path, url: &str, flows: u32, together: u32) -> Result<Duration, Box<dyn Error>> {
    let running = Running::begin(folder)?;
    let hour = 3_600_000;
    let work = json!({
        "max_retries": 3, "backoff": hour, "max_backoff": hour, "backoff_type": "fixed",
    });
    running.register(&single(&format!("{url}/busy"), &work))?;
    let began = Instant::now();
    let mut first = 0_u32;
    while first < flows {
        let next = flows.min(first.saturating_add(together.max(1)));
        running.start(THREADS.min(together), first..next)?;
        running.hear(Happened::WaitsForRetry, next.saturating_sub(first))?;
        first = next;
    }
    Ok(began.elapsed())
}

/// Goes on with them, and watches.
pub(crate) fn go_on(folder: &Path, flows: u32) -> Result<Cost, Box<dyn Error>> {
    let began = Instant::now();
    let running = Running::begin(folder)?;
    let opened = began.elapsed();
    let recovered = running.host.recover()?;
    let looked_at = began.elapsed();
    if recovered.resumed.len() != usize::try_from(flows)? {
        return Err(format!("{} flows are gone on with", recovered.resumed.len()).into());
    }
    running.hear(Happened::Resumed, flows)?;
    let on_disk = began.elapsed();
    // What the last records lead to is done before anybody looks.
    std::thread::sleep(Duration::from_secs(1));
    let worked = processor_time()?;
    let before = time_of_threads()?;
    std::thread::sleep(WATCHED);
    Ok(Cost {
        opened,
        looked_at,
        on_disk,
        worked,
        memory: memory()?,
        idle: time_of_threads()?.saturating_sub(before),
    })
}

/// The processor time of this process, also of threads that have ended, in hundredths of a second.
fn processor_time() -> Result<Duration, Box<dyn Error>> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(") ").ok_or("no name in /proc/self/stat")?;
    let mut ticks = 0_u64;
    for field in fields.split(' ').skip(11).take(2) {
        ticks = ticks.saturating_add(field.parse()?);
    }
    Ok(Duration::from_millis(ticks.saturating_mul(10)))
}

/// The processor time of the threads that are there, to the nanosecond.
fn time_of_threads() -> Result<Duration, Box<dyn Error>> {
    let mut nanoseconds = 0_u64;
    for thread in fs::read_dir("/proc/self/task")? {
        let told = fs::read_to_string(thread?.path().join("schedstat"))?;
        let first = told.split(' ').next().unwrap_or_default();
        nanoseconds = nanoseconds.saturating_add(first.parse()?);
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// Kilobytes in memory.
fn memory() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("VmRSS:"));
    let line = line.ok_or("no VmRSS in /proc/self/status")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
