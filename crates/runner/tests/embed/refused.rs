//! A job that cannot be run is refused before anything is begun.

use std::sync::Barrier;
use std::thread;

use serde_json::{Value, json};
use undaunted_runner::embed::{EmbedError, FunctionAttempt, Functions, JobDescription, Runner};

async fn nothing(_: FunctionAttempt) -> undaunted_runner::embed::FunctionResult {
    Ok(Value::Null)
}

fn runner(folder: &tempfile::TempDir) -> Runner {
    Runner::open(folder.path(), Functions::new().with("nothing", nothing)).unwrap()
}

/// The error for a job that is not begun; the store stays empty.
fn refused(work: &JobDescription) -> EmbedError {
    let folder = tempfile::tempdir().unwrap();
    let runner = runner(&folder);
    let Err(error) = runner.begin("job", work) else {
        panic!("the job was begun");
    };
    assert!(runner.unfinished().unwrap().is_empty());
    error
}

#[test]
fn an_invalid_description_is_refused_with_all_that_is_wrong() {
    let each = || JobDescription::each("nothing", ["one"]);
    let typo = "`atempts` is not a key";
    let cases: [(JobDescription, &[&str]); 5] = [
        (
            JobDescription::each("something", ["one"]),
            &["job `job` calls the function `something`, which is not registered"],
        ),
        (each().retry(json!({"atempts": 3})), &[typo, "did you mean `attempts`?"]),
        (JobDescription::workflow("- function: nothing\n  timeout: soon\n"), &["line 2, column 12"]),
        (each().of_command("env", json!({"A": "b"})), &["`env` has no effect"]),
        (each().of_command("working_dir", "/"), &["`working_dir` has no effect"]),
    ];
    for (work, expected) in cases {
        let error = refused(&work).to_string();
        assert!(expected.iter().all(|text| error.contains(text)), "{error}");
    }
}

#[test]
fn an_invalid_job_name_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let begun = runner(&folder).begin("../job", &JobDescription::each("nothing", ["one"]));
    assert!(matches!(begun, Err(EmbedError::Name { .. })));
    assert!(!folder.path().join("job").exists());
}

#[test]
fn another_description_under_the_same_name_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let runner = runner(&folder);
    let work = JobDescription::each("nothing", ["one"]);
    runner.begin("job", &work).unwrap().wait().unwrap();
    // The same work is the same job, which has ended.
    let again = runner.begin("job", &work).unwrap().wait().unwrap();
    assert_eq!(again.report().attempts, 1);
    let other = runner.begin("job", &work.max_parallel(3));
    assert!(matches!(other, Err(EmbedError::Exists { .. })));
}

#[test]
fn a_job_that_another_runner_runs_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let hangs = |_: FunctionAttempt| std::future::pending();
    let first = Runner::open(folder.path(), Functions::new().with("nothing", hangs)).unwrap();
    let work = JobDescription::each("nothing", ["one"]);
    let _running = first.begin("job", &work).unwrap();
    let second = runner(&folder);
    let Err(error) = second.begin("job", &work) else {
        panic!("two run it");
    };
    assert!(matches!(error, EmbedError::Journal(_)), "{error}");
}

#[test]
fn concurrent_begins_of_one_job_never_mix_their_items() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let together = Barrier::new(2);
        let begin = |item: &'static str| {
            let runner = runner(&folder);
            together.wait();
            let running = runner.begin("job", &JobDescription::each("nothing", [item])).ok()?;
            let results = running.wait().unwrap().results().unwrap();
            Some((item, results[0].item.clone()))
        };
        let came: Vec<_> = thread::scope(|scope| {
            let both = ["one", "two"].map(|item| scope.spawn(move || begin(item)));
            let both = both.into_iter().map(|begun| begun.join().unwrap());
            both.flatten().collect()
        });
        // A job that has ended is returned as it ended.
        match came.as_slice() {
            [(own, worked_on)] => assert_eq!(own, worked_on),
            [(_, one), (_, same)] => assert_eq!(one, same),
            _ => panic!("the job was not begun"),
        }
    }
}
