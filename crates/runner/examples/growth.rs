//! What an item costs, however many there are, and how late those are that fall due together.
//!
//! `cargo run --release -p undaunted-runner --example growth -- FOLDER run 1000000`: a job of so many items whose
//! function does nothing; `fails` instead of `run` has each of them fail once.
//!
//! `… -- FOLDER due`: goes on with the job that `held FOLDER NUMBER waiting SECONDS` has written.

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use undaunted_runner::embed::{Attempt, Failed, Functions, Runner, Work};

/// How many items are worked on at a time.
const WIDTH: u32 = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [folder, "run", number] => run(folder, number.parse()?, false),
        [folder, "fails", number] => run(folder, number.parse()?, true),
        [folder, "due"] => due(folder),
        _ => Err("growth FOLDER run NUMBER | fails NUMBER | due".into()),
    }
}

fn run(folder: &str, number: u32, fails: bool) -> Result<(), Box<dyn Error>> {
    let nothing = move |attempt: Attempt| async move {
        if fails && attempt.number() == 1 {
            return Err(Failed::transient("not yet"));
        }
        Ok(Value::Null)
    };
    let runner = Runner::open(folder, Functions::new().with("nothing", nothing))?;
    let items = (0..number).map(|item| format!("item-{item}"));
    let retries = json!({"attempts": 3, "initial_delay": "1ms", "jitter": true});
    let work = Work::each("nothing", items).at_once(WIDTH).retry(retries);
    let (began, used) = (Instant::now(), processor()?);
    let done = runner.begin("measured", &work)?.wait()?;
    let (took, used) = (began.elapsed(), processor()?.saturating_sub(used));
    let counts = done.report().counts;
    println!(
        "{number} items, {} attempts: {:.2?}, {:.2?} of the processor, {:.2} µs an item",
        counts.attempts,
        took,
        used,
        used.as_secs_f64() * 1e6 / f64::from(number)
    );
    Ok(())
}

fn due(folder: &str) -> Result<(), Box<dyn Error>> {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&calls);
    let nothing = move |_: Attempt| {
        if let Ok(mut calls) = note.lock() {
            calls.push(Instant::now());
        }
        async { Ok(Value::Null) }
    };
    let runner = Runner::open(folder, Functions::new().with("nothing", nothing))?;
    let began = Instant::now();
    let running = runner.resume("measured")?;
    println!("gone on with after {:.2?}", began.elapsed());
    let counts = running.wait()?.report().counts;
    let calls = calls.lock().map_err(|_| "a function panicked")?;
    let first = calls.first().copied().ok_or("nothing was due")?;
    let after = |part: usize| {
        let at = calls.get((calls.len() - 1) * part / 100);
        at.map(|at| at.duration_since(first)).unwrap_or_default()
    };
    println!(
        "{} calls for {} items, {} succeeded; after the first: 1 % by {:.2?}, half by {:.2?}, all by {:.2?}",
        calls.len(),
        counts.total,
        counts.succeeded,
        after(1),
        after(50),
        after(100)
    );
    Ok(())
}

/// What this process has used of the processor.
fn processor() -> Result<Duration, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(") ").next().unwrap_or_default();
    let mut fields = fields.split(' ').skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    let (user, system) = ticks().zip(ticks()).ok_or("no times")?;
    Ok(Duration::from_millis((user + system) * 10))
}
