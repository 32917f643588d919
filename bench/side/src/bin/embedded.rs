//! The driver of Undaunted inside a program: called and answering as the drivers of the peers do
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

/// How many items are worked on at a time, and so may share a sync.
const WIDTH: u32 = 1024;

/// How long nothing more may be written for everything to be written.
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
        "resume" | "due" => go_on(&folder, counted(argument)?),
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
    JobDescription::each("item", items).at_once(width).retry(retry)
}

/// From when everything is submitted until the job has ended.
fn measure(folder: &Path, items: u32, functions: Functions) -> Result<(), Box<dyn Error>> {
    let runner = Runner::open(folder, functions)?;
    let work = work(items);
    let job = runner.begin(JOB, &work)?;
    // It is on the disk, and its items are.
    let began = Instant::now();
    let done = job.wait()?;
    let seconds = began.elapsed().as_secs_f64();
    let attempts = done.report().attempts;
    println!("{}", json!({"items": items, "seconds": seconds, "attempts": attempts}));
    Ok(())
}

/// Somebody outside counts these lines: which item, and when.
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

/// Goes on with the job, and is ready when that is on record: everything that waits is known by then.
fn go_on(folder: &Path, functions: Functions) -> Result<(), Box<dyn Error>> {
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

/// Every item fails, and its retry is due when the others' are. The process then ends without a word.
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

/// Where the journal of the job ends.
fn head(store: &SqliteStore) -> Result<Option<Head>, Box<dyn Error>> {
    let listed = store.list(journal::FAMILY, JOB)?;
    Ok(listed.into_iter().next().map(|listed| listed.head))
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
