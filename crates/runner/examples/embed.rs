//! A durable job whose command is an async function. Run it, kill it in the middle with `kill -9`, and run it
//! again: orders that were charged are not charged again, and no attempt is forgotten.

use std::error::Error;
use std::time::Duration;

use serde_json::json;
use undaunted_runner::embed::{
    FunctionAttempt, FunctionFailure, FunctionResult, Functions, JobDescription, Runner,
};

async fn charge(attempt: FunctionAttempt) -> FunctionResult {
    let (order, price): (u64, u64) = attempt.input()?;
    tokio::time::sleep(Duration::from_millis(200)).await;
    if attempt.number() == 1 && order.is_multiple_of(2) {
        return Err(FunctionFailure::transient("the till is broken"));
    }
    Ok(json!({"paid": price, "receipt": attempt.receipt_token()}))
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: embed STORE")?;
    let runner = Runner::open(folder, Functions::new().with("charge", charge))?;
    let orders = (1..=20).map(|order| json!([order, 10 * order]));
    let retries = json!({"attempts": 3, "initial_delay": "100ms", "jitter": true});
    let work = JobDescription::each("charge", orders).max_parallel(4).retry(retries);
    let done = runner.begin("monday", &work)?.wait()?;
    for result in done.results()? {
        let said = result.output.or(result.error).unwrap_or_default();
        println!("{} {}: {said}", result.item, result.status);
    }
    let report = done.report();
    println!("{} attempts, {} retries", report.attempts, report.retries);
    Ok(())
}
