//! The driver of Undaunted embedded in a program, with the interface of all drivers
//! (`bench/peers/contract.mjs`).

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use undaunted_runner::embed::{
    FunctionAttempt, FunctionFailure, FunctionResult, Functions, JobDescription, Runner,
};
use undaunted_runner::journal;
use undaunted_store::{Head, SqliteStore, Store};

const JOB: &str = "measured";

/// How many items run at a time, and so can share a sync.
const WIDTH: u32 = 1024;

/// Everything counts as written after this time without a write.
const QUIET: Duration = Duration::from_millis(500);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (workload, items, argument) = match arguments.as_slice() {
        [workload, items] => (workload.as_str(), items.parse()?, ""),
        [workload, items, argument] => (workload.as_str(), items.parse()?, argument.as_str()),
        _ => return Err("driver WORKLOAD N [ARGUMENT]".into()),
    };
    let folder = std::env::var_os("BENCH_FOLDER").ok_or("BENCH_FOLDER is not set")?;
    let folder = PathBuf::from(folder).join("store");
    match workload {
        "noop" => measure(&folder, items, Functions::new().with("item", nothing)),
        "retry" => measure(&folder, items, Functions::new().with("item", second_time)),
        "begin" => measure(&folder, items, counted(argument)?),
        "resume" | "due" => resume(&folder, counted(argument)?),
        "pend" => pend(&folder, items, argument.parse()?),
        _ => Err("workloads: noop, retry, begin, resume, pend, due".into()),
    }
}

async fn nothing(_: FunctionAttempt) -> FunctionResult {
    Ok(Value::Null)
}

async fn second_time(attempt: FunctionAttempt) -> FunctionResult {
    if attempt.number() == 1 {
        return Err(FunctionFailure::transient("the first attempt fails"));
    }
    Ok(Value::Null)
}

fn work(items: u32) -> JobDescription {
    let items = (0..items).map(|item| json!(item.to_string()));
    let retry = json!({"attempts": 3, "backoff": "fixed", "initial_delay": "0s", "max_delay": "0s"});
    let width = std::env::var("BENCH_WIDTH").ok();
    let width = width.and_then(|width| width.parse().ok()).unwrap_or(WIDTH);
    JobDescription::each("item", items).max_parallel(width).retry(retry)
}

/// Times a job from its submission to its end.
fn measure(folder: &Path, items: u32, functions: Functions) -> Result<(), Box<dyn Error>> {
    let runner = Runner::open(folder, functions)?;
    let work = work(items);
    let job = runner.begin(JOB, &work)?;
    // The job and its items are on the disk.
    let began = Instant::now();
    let done = job.wait()?;
    let seconds = began.elapsed().as_secs_f64();
    let attempts = done.report().attempts;
    println!("{}", json!({"items": items, "seconds": seconds, "attempts": attempts}));
    Ok(())
}

/// Writes a line with the item and the time for each execution, which the benchmark counts.
fn counted(file: &str) -> Result<Functions, Box<dyn Error>> {
    let file = OpenOptions::new().append(true).create(true).open(file)?;
    let file: Arc<File> = Arc::new(file);
    Ok(Functions::new().with("item", move |attempt: FunctionAttempt| {
        let file = Arc::clone(&file);
        async move {
            let line = format!("{} {}\n", attempt.item(), now().as_millis());
            (&*file).write_all(line.as_bytes())?;
            Ok(Value::Null)
        }
    }))
}

/// Resumes the job. It is ready when that is recorded, because by then the whole state is loaded.
fn resume(folder: &Path, functions: Functions) -> Result<(), Box<dyn Error>> {
    let runner = Runner::open(folder, functions)?;
    let looking = SqliteStore::open(folder)?;
    let before = head(&looking)?;
    let job = runner.resume(JOB)?;
    while head(&looking)? == before {
        thread::sleep(Duration::from_millis(1));
    }
    println!("{}", json!({"ready": true}));
    job.wait()?;
    Ok(())
}

/// Lets every item fail, with all retries due at the same time. Then the process exits without suspending the job.
fn pend(folder: &Path, items: u32, due: u64) -> Result<(), Box<dyn Error>> {
    let failed = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&failed);
    let functions = Functions::new().with("item", move |_| {
        let left = Duration::from_millis(due).saturating_sub(now());
        count.fetch_add(1, Ordering::Relaxed);
        async move { Err(FunctionFailure::throttled("come back later", Some(left))) }
    });
    let runner = Runner::open(folder, functions)?;
    let looking = SqliteStore::open(folder)?;
    let work = work(items).retry(json!({"attempts": 3, "max_retry_after": "1d"}));
    let began = Instant::now();
    let _job = runner.begin(JOB, &work)?;
    let (mut last, mut changed) = (None, Instant::now());
    while failed.load(Ordering::Relaxed) < items || changed.elapsed() < QUIET {
        let head = head(&looking)?;
        if head != last {
            (last, changed) = (head, Instant::now());
        }
        thread::sleep(Duration::from_millis(10));
    }
    println!("{}", json!({"items": items, "seconds": began.elapsed().as_secs_f64()}));
    std::process::exit(0)
}

/// The head of the job's journal.
fn head(store: &SqliteStore) -> Result<Option<Head>, Box<dyn Error>> {
    let listed = store.list(journal::FAMILY, JOB)?;
    Ok(listed.into_iter().next().map(|listed| listed.head))
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
