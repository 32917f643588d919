//! Flows that wait for a retry: the cost of resuming them, and their cost while they wait.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::flows::{Happened, Running, single};

/// How many threads start flows.
const THREADS: u32 = 64;

/// How long the idle flows are watched.
const WATCHED: Duration = Duration::from_secs(10);

/// The cost of the flows of a store for a process that resumes them.
pub(crate) struct Cost {
    /// The time until the store is open.
    pub(crate) opened: Duration,
    /// The time until every flow is loaded.
    pub(crate) loaded: Duration,
    /// The time until `job_resumed` of every flow is on the disk.
    pub(crate) on_disk: Duration,
    /// The CPU time until then.
    pub(crate) worked: Duration,
    /// The resident memory afterwards, in kilobytes.
    pub(crate) memory: u64,
    /// The CPU time while nothing happened.
    pub(crate) idle: Duration,
}

/// Starts flows whose step fails once and is retried in an hour, and times that. The flows are not suspended, as
/// if the process had been killed. `together` of them fail at the same time; they share an origin and its breaker.
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

/// Resumes the flows, and watches them while they wait.
pub(crate) fn resume(folder: &Path, flows: u32) -> Result<Cost, Box<dyn Error>> {
    let began = Instant::now();
    let running = Running::begin(folder)?;
    let opened = began.elapsed();
    let recovered = running.host.recover()?;
    let loaded = began.elapsed();
    if recovered.resumed.len() != usize::try_from(flows)? {
        return Err(format!("{} flows were resumed", recovered.resumed.len()).into());
    }
    running.hear(Happened::Resumed, flows)?;
    let on_disk = began.elapsed();
    // The work that the last records cause must be done before the idle time starts.
    std::thread::sleep(Duration::from_secs(1));
    let worked = processor_time()?;
    let before = time_of_threads()?;
    std::thread::sleep(WATCHED);
    Ok(Cost {
        opened,
        loaded,
        on_disk,
        worked,
        memory: memory()?,
        idle: time_of_threads()?.saturating_sub(before),
    })
}

/// The CPU time of this process, including ended threads, with a resolution of 10 ms.
fn processor_time() -> Result<Duration, Box<dyn Error>> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(") ").ok_or("no name in /proc/self/stat")?;
    let mut ticks = 0_u64;
    for field in fields.split(' ').skip(11).take(2) {
        ticks = ticks.saturating_add(field.parse()?);
    }
    Ok(Duration::from_millis(ticks.saturating_mul(10)))
}

/// The CPU time of the living threads, to the nanosecond.
fn time_of_threads() -> Result<Duration, Box<dyn Error>> {
    let mut nanoseconds = 0_u64;
    for thread in fs::read_dir("/proc/self/task")? {
        let told = fs::read_to_string(thread?.path().join("schedstat"))?;
        let first = told.split(' ').next().unwrap_or_default();
        nanoseconds = nanoseconds.saturating_add(first.parse()?);
    }
    Ok(Duration::from_nanos(nanoseconds))
}

fn memory() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("VmRSS:"));
    let line = line.ok_or("no VmRSS in /proc/self/status")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
