//! Policies, budgets and outcomes of functions are the same as those of shell commands.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use undaunted_engine::event::{Event, ItemEvent};
use undaunted_engine::job::Plans;
use undaunted_engine::view::JobStatus;
use undaunted_engine::workflow::checks_made;
use undaunted_runner::embed::{
    FinishedJob, FunctionAttempt, FunctionFailure, FunctionResult, Functions, JobDescription, ResultStatus,
    Runner,
};
use undaunted_runner::journal;
use undaunted_store::SqliteStore;

fn quick() -> Value {
    json!({"attempts": 3, "backoff": "fixed", "initial_delay": "1ms"})
}

/// Runs one job with one function.
fn run<F, R>(function: F, work: impl FnOnce(&str) -> JobDescription) -> (TempDir, FinishedJob)
where
    F: Fn(FunctionAttempt) -> R + Send + Sync + 'static,
    R: Future<Output = FunctionResult> + Send + 'static,
{
    let folder = tempfile::tempdir().unwrap();
    let runner = Runner::open(folder.path(), Functions::new().with("f", function)).unwrap();
    let done = runner.begin("job", &work("f")).unwrap().wait().unwrap();
    (folder, done)
}

/// The events of the job.
fn events(folder: &TempDir) -> Vec<Event> {
    let store = SqliteStore::open(folder.path()).unwrap();
    let mut events = Vec::new();
    journal::replay(&store, "job", &Plans::default(), |_, _, record| {
        events.push(record.event.clone());
    })
    .unwrap();
    events
}

#[test]
fn every_item_has_the_result_of_its_function() {
    let double = |attempt: FunctionAttempt| async move {
        let number: u64 = attempt.input()?;
        Ok(json!({ "twice": number * 2 }))
    };
    let (_folder, done) = run(double, |f| JobDescription::each(f, 1..=3_u32));
    assert_eq!(done.status(), JobStatus::Completed);
    let results = done.results().unwrap();
    let twice = results.iter().map(|it| it.json::<Value>().unwrap());
    let twice: Vec<Value> = twice.map(|it| it["twice"].clone()).collect();
    assert_eq!(twice, [2, 4, 6]);
    assert!(results.iter().all(|it| it.status == ResultStatus::Succeeded));
}

#[test]
fn a_failure_is_retried_with_the_next_number_and_the_same_token() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let third = move |attempt: FunctionAttempt| {
        let seen = Arc::clone(&noted);
        async move {
            let token = attempt.receipt_token().to_owned();
            seen.lock().unwrap().push((attempt.number(), token));
            if attempt.number() < 3 {
                return Err(FunctionFailure::transient("not yet"));
            }
            Ok(Value::from("at last"))
        }
    };
    let (_folder, done) = run(third, |f| JobDescription::each(f, ["one"]).retry(quick()));
    let seen = seen.lock().unwrap();
    assert_eq!(seen.iter().map(|it| it.0).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(seen.iter().all(|it| it.1 == seen[0].1 && it.1.len() == 32));
    let result = &done.results().unwrap()[0];
    assert_eq!(result.output.as_deref(), Some("at last"));
    assert_eq!(done.report().retries, 2);
}

#[test]
fn a_permanent_failure_is_a_dead_letter_at_once() {
    let never = |_: FunctionAttempt| async { Err::<Value, _>(FunctionFailure::permanent("no such account")) };
    let (_folder, done) = run(never, |f| JobDescription::each(f, ["one"]).retry(quick()));
    let result = &done.results().unwrap()[0];
    assert_eq!(result.status, ResultStatus::Dead);
    assert_eq!(result.error.as_deref(), Some("no such account"));
    assert_eq!(done.report().attempts, 1);
}

#[test]
fn an_input_of_another_type_is_a_permanent_failure() {
    let number = |attempt: FunctionAttempt| async move { Ok(Value::from(attempt.input::<u64>()?)) };
    let (_folder, done) = run(number, |f| JobDescription::each(f, ["one"]).retry(quick()));
    assert_eq!(done.report().attempts, 1);
    let error = done.results().unwrap()[0].error.clone().unwrap();
    assert!(error.starts_with("cannot deserialize the input"), "{error}");
}

#[test]
fn any_error_is_a_transient_failure_with_its_causes() {
    let wrong = |_: FunctionAttempt| async {
        let number: u32 = "x".parse()?;
        Ok(Value::from(number))
    };
    let (_folder, done) = run(wrong, |f| JobDescription::each(f, ["one"]).retry(quick()));
    let result = &done.results().unwrap()[0];
    assert_eq!(result.error.as_deref(), Some("invalid digit found in string"));
    assert_eq!(done.report().attempts, 4);
}

#[test]
fn a_panic_fails_only_its_own_attempt() {
    let panics = |attempt: FunctionAttempt| async move {
        assert!(attempt.item() != "bad", "it is bad");
        Ok(Value::Null)
    };
    let (_folder, done) = run(panics, |f| JobDescription::each(f, ["good", "bad"]).retry(quick()));
    let results = done.results().unwrap();
    assert_eq!(results[0].status, ResultStatus::Succeeded);
    assert_eq!(results[1].status, ResultStatus::Dead);
    assert_eq!(results[1].error.as_deref(), Some("the function panicked: it is bad"));
    assert_eq!(done.report().attempts, 5);
}

#[test]
fn rules_match_the_error_of_a_function() {
    let broken =
        |_: FunctionAttempt| async { Err::<Value, _>(FunctionFailure::transient("the till is broken")) };
    let rules = json!({"attempts": 3, "initial_delay": "1ms",
        "rules": [{"stderr": "broken", "then": "dead_letter"}]});
    let (_folder, done) = run(broken, |f| JobDescription::each(f, ["one"]).retry(rules));
    assert_eq!(done.report().attempts, 1);
    let listed = json!({"attempts": 1, "initial_delay": "1ms", "retry_on": [{"pattern": "broken"}]});
    let (_folder, done) = run(broken, |f| JobDescription::each(f, ["one"]).retry(listed));
    assert_eq!(done.report().attempts, 2);
}

#[test]
fn max_parallel_limits_concurrent_calls() {
    let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (counted, largest) = (Arc::clone(&now), Arc::clone(&most));
    let busy = move |_: FunctionAttempt| {
        let (now, most) = (Arc::clone(&counted), Arc::clone(&largest));
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(Value::Null)
        }
    };
    let items = (0..200).map(|item| item.to_string());
    let (_folder, done) = run(busy, |f| JobDescription::each(f, items).max_parallel(3));
    assert_eq!(done.report().items.succeeded, 200);
    assert!((1..=3).contains(&most.load(Ordering::SeqCst)));
}

#[test]
fn an_open_breaker_prevents_calls() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let down = move |_: FunctionAttempt| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Err::<Value, _>(FunctionFailure::transient("down")) }
    };
    let work = |f: &str| {
        let items = (0..10).map(|item| item.to_string());
        let breaker = json!({"name": "till", "failure_threshold": 2, "recovery_timeout": "1h",
            "when_open": "fail"});
        JobDescription::each(f, items).max_parallel(1).of_command("breaker", breaker)
    };
    let (_folder, done) = run(down, work);
    assert_eq!(calls.load(Ordering::SeqCst), 2);
    assert_eq!(done.report().items.dead, 10);
}

#[test]
fn a_secret_returned_by_a_function_is_not_recorded() {
    // Every process of a test run has it.
    let secret = std::env::var("CARGO_PKG_NAME").unwrap();
    let text = "
secrets: {PLACE: {env: CARGO_PKG_NAME}}
commands: [{function: f}, {function: f, retry_config: {attempts: 0}}]
";
    let told = secret.clone();
    let tells = move |_: FunctionAttempt| {
        let told = told.clone();
        async move { Ok(Value::from(format!("it is {told}!"))) }
    };
    let (folder, done) = run(tells, |_| JobDescription::workflow(text));
    assert_eq!(done.status(), JobStatus::Completed);
    let fails = move |_: FunctionAttempt| {
        let told = secret.clone();
        async move { Err::<Value, _>(FunctionFailure::permanent(format!("not {told}"))) }
    };
    let (failed, _) = run(fails, |_| JobDescription::workflow(text));
    for folder in [folder, failed] {
        let events = format!("{:?}", events(&folder));
        assert!(!events.contains(env!("CARGO_PKG_NAME")), "{events}");
        assert!(events.contains("it is ") || events.contains("not "), "{events}");
    }
}

#[test]
fn a_call_that_is_dropped_with_its_runtime_is_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (tell, begun) = std::sync::mpsc::channel();
    let hangs = move |_: FunctionAttempt| {
        tell.send(()).unwrap();
        std::future::pending()
    };
    let functions = Functions::new().with("hangs", hangs);
    let runner = runtime.block_on(async { Runner::open(folder.path(), functions).unwrap() });
    let running = runner.begin("job", &JobDescription::each("hangs", ["one"])).unwrap();
    begun.recv().unwrap();
    runtime.shutdown_background();
    let done = running.wait().unwrap();
    let error = done.results().unwrap()[0].error.clone().unwrap();
    assert!(error.contains("dropped before it finished"), "{error}");
}

#[test]
fn the_output_of_a_function_is_limited() {
    let much = |_: FunctionAttempt| async { Ok(Value::from("x".repeat(100))) };
    let work = |f: &str| JobDescription::each(f, ["one"]).of_command("output_limit", 99);
    let (_folder, done) = run(much, work);
    let error = done.results().unwrap()[0].error.clone().unwrap();
    assert_eq!(error, "the function returned more than 99 bytes");
}

#[test]
fn a_job_in_a_moved_store_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = |_: FunctionAttempt| async { Ok(Value::Null) };
    let functions = Functions::new().with("nothing", nothing);
    let work = JobDescription::each("nothing", ["one"]);
    let (before, after) = (folder.path().join("a"), folder.path().join("b"));
    let runner = Runner::open(&before, functions.clone()).unwrap();
    runner.begin("job", &work).unwrap().wait().unwrap();
    drop(runner);
    std::fs::rename(before, &after).unwrap();
    let runner = Runner::open(&after, functions).unwrap();
    let done = runner.begin("job", &work).unwrap().wait().unwrap();
    assert_eq!(done.report().attempts, 1);
}

#[test]
fn a_call_that_exceeds_its_timeout_is_ended() {
    let hangs = |attempt: FunctionAttempt| async move {
        if attempt.number() == 1 {
            std::future::pending::<()>().await;
        }
        Ok(Value::Null)
    };
    let work = |f: &str| JobDescription::each(f, ["one"]).retry(quick()).of_command("timeout", "50ms");
    let (folder, done) = run(hangs, work);
    assert_eq!(done.status(), JobStatus::Completed);
    let timeouts = events(&folder).into_iter().filter(|event| {
        matches!(event, Event::Item(ItemEvent::AttemptFailed(failed))
            if failed.cause == undaunted_policy::FailureCause::Timeout)
    });
    assert_eq!(timeouts.count(), 1);
}

#[test]
fn a_requested_wait_is_respected() {
    let asks = |attempt: FunctionAttempt| async move {
        if attempt.number() == 1 {
            let wait = Duration::from_millis(300);
            return Err(FunctionFailure::throttled("too many", Some(wait)));
        }
        Ok(Value::Null)
    };
    let (_folder, done) = run(asks, |f| JobDescription::each(f, ["one"]).retry(quick()));
    assert!(done.report().delay_ms.0 >= Duration::from_millis(300));
}

#[test]
fn the_job_pool_is_never_exceeded() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let never = move |_: FunctionAttempt| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { Err::<Value, _>(FunctionFailure::transient("down")) }
    };
    let work = |f: &str| {
        let items = (0..20).map(|item| item.to_string());
        JobDescription::each(f, items).retry(quick()).of_job("retry_budget", 7)
    };
    let (_folder, done) = run(never, work);
    assert_eq!(calls.load(Ordering::Relaxed), 27);
    assert_eq!(done.report().retries, 7);
    assert_eq!(done.status(), JobStatus::Partial);
}

#[test]
fn a_workflow_passes_inputs_to_functions() {
    let text = "
- id: add
  function: {name: f, with: {numbers: [1, 2], name: sum}}
  capture_output: said
- function: {name: f, with: {numbers: [10], name: '${said}'}}
  id: again
";
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let sum = move |attempt: FunctionAttempt| {
        noted.lock().unwrap().push(attempt.input_text().to_owned());
        async move {
            let input: Value = attempt.input()?;
            let numbers = input["numbers"].as_array().cloned().unwrap_or_default();
            let sum: u64 = numbers.iter().filter_map(Value::as_u64).sum();
            Ok(Value::from(format!("{} {sum}", input["name"].as_str().unwrap())))
        }
    };
    let (_folder, done) = run(sum, |_| JobDescription::workflow(text));
    assert_eq!(done.status(), JobStatus::Completed);
    let seen = seen.lock().unwrap();
    let second: Value = serde_json::from_str(&seen[1]).unwrap();
    assert_eq!(second, json!({"numbers": [10], "name": "sum 3"}));
}

#[test]
fn functions_run_in_the_runtime_of_the_program() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let status = runtime.block_on(async {
        let id = tokio::runtime::Handle::current().id();
        let here = move |_: FunctionAttempt| async move {
            assert_eq!(tokio::runtime::Handle::current().id(), id);
            Ok(Value::Null)
        };
        let runner = Runner::open(folder.path(), Functions::new().with("here", here)).unwrap();
        let running = runner.begin("job", &JobDescription::each("here", ["one"])).unwrap();
        running.finished().await.unwrap().status()
    });
    assert_eq!(status, JobStatus::Completed);
}

#[test]
fn wait_does_not_panic_in_a_multi_threaded_runtime() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let status = runtime.block_on(async {
        let nothing = |_: FunctionAttempt| async { Ok(Value::Null) };
        let functions = Functions::new().with("nothing", nothing);
        let runner = Runner::open(folder.path(), functions).unwrap();
        let running = runner.begin("job", &JobDescription::each("nothing", ["one"]));
        running.unwrap().wait().unwrap().status()
    });
    assert_eq!(status, JobStatus::Completed);
}

#[test]
fn cancelling_a_job_ends_running_calls() {
    let folder = tempfile::tempdir().unwrap();
    let (tell, begun) = std::sync::mpsc::channel();
    let hangs = move |_: FunctionAttempt| {
        tell.send(()).unwrap();
        std::future::pending()
    };
    let runner = Runner::open(folder.path(), Functions::new().with("hangs", hangs)).unwrap();
    let running = runner.begin("job", &JobDescription::each("hangs", ["one"])).unwrap();
    begun.recv().unwrap();
    running.cancel();
    assert_eq!(running.wait().unwrap().status(), JobStatus::Cancelled);
}

#[test]
fn a_suspended_job_is_resumed_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let work = JobDescription::each("slow", (0..50).map(|item| item.to_string())).max_parallel(1);
    let calls = Arc::new(AtomicU32::new(0));
    let open = |tell: std::sync::mpsc::Sender<()>| {
        let calls = Arc::clone(&calls);
        let slow = move |_: FunctionAttempt| {
            calls.fetch_add(1, Ordering::Relaxed);
            // In the second run the receiver is gone.
            let _ = tell.send(());
            async { Ok(Value::Null) }
        };
        Runner::open(folder.path(), Functions::new().with("slow", slow)).unwrap()
    };
    let (tell, begun) = std::sync::mpsc::channel();
    let runner = open(tell);
    let running = runner.begin("job", &work).unwrap();
    begun.recv().unwrap();
    runner.suspend();
    let left = running.wait().unwrap();
    assert!([JobStatus::Suspended, JobStatus::Completed].contains(&left.status()));
    drop(left);
    let runner = open(std::sync::mpsc::channel().0);
    let done = runner.begin("job", &work).unwrap().wait().unwrap();
    assert_eq!(done.status(), JobStatus::Completed);
    assert_eq!(calls.load(Ordering::Relaxed), 50);
}

#[test]
fn the_workflow_of_a_job_is_checked_once() {
    let before = checks_made();
    let folder = tempfile::tempdir().unwrap();
    let echo = |attempt: FunctionAttempt| async move { attempt.input::<Value>() };
    let runner = Runner::open(folder.path(), Functions::new().with("f", echo)).unwrap();
    let done = runner.begin("job", &JobDescription::each("f", 1..=3_u32));
    assert_eq!(done.unwrap().wait().unwrap().status(), JobStatus::Completed);
    assert_eq!(checks_made() - before, 1);
}
