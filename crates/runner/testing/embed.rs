//! A program with functions of its own, to be killed by tests of this crate. Not part of any product.
//!
//! `test-embed FOLDER LOG ITEMS` begins or resumes a job in the store of the folder. Every call of its
//! function first appends a line to the log, `ITEM ATTEMPT`; the first attempt of every third item fails.
//! When the job has ended it prints the number of attempts and of retries.

use std::error::Error;
use std::fs::OpenOptions;
use std::io::Write;
use std::time::Duration;

use serde_json::{Value, json};
use undaunted_runner::embed::{
    FunctionAttempt, FunctionFailure, FunctionResult, Functions, JobDescription, Runner,
};

async fn note(log: String, attempt: FunctionAttempt) -> FunctionResult {
    let mut log = OpenOptions::new().create(true).append(true).open(log)?;
    let line = format!("{} {}\n", attempt.item(), attempt.number());
    log.write_all(line.as_bytes())?;
    tokio::time::sleep(Duration::from_millis(2)).await;
    let number: u64 = attempt.item().parse()?;
    if number.is_multiple_of(3) && attempt.number() == 1 {
        return Err(FunctionFailure::transient("the first time always fails"));
    }
    Ok(Value::from(number))
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [folder, log, items] = words.as_slice() else {
        return Err("test-embed FOLDER LOG ITEMS".into());
    };
    let (log, items) = (log.clone(), items.parse::<u64>()?);
    let functions = Functions::new().with("note", move |attempt| note(log.clone(), attempt));
    let runner = Runner::open(folder, functions)?;
    let work = JobDescription::each("note", (1..=items).map(|item| item.to_string()))
        .max_parallel(8)
        .retry(json!({"attempts": 20, "backoff": "fixed", "initial_delay": "5ms"}));
    let done = runner.begin("noted", &work)?.wait()?;
    let report = done.report();
    println!("{} {}", report.attempts, report.retries);
    Ok(())
}
