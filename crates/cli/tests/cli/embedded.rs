//! Jobs whose commands are functions of another program, as the command line sees them.

use serde_json::Value;
use undaunted_runner::embed::{FunctionAttempt, FunctionFailure, Functions, JobDescription, Runner};

use crate::binary::{text, undaunted, undaunted_in};

#[test]
fn a_function_is_no_command_of_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("job.yaml");
    std::fs::write(&path, "- function: charge\n").expect("written");
    for command in ["check", "run"] {
        let output = undaunted(&[command, path.to_str().expect("a path")]);
        assert_eq!(output.status.code(), Some(3), "{command}");
        let said = text(&output.stderr);
        assert!(said.contains("job.yaml:1:3"), "{said}");
        assert!(said.contains("functions are not available here"), "{said}");
    }
}

#[test]
fn functions_and_shell_commands_stand_side_by_side() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let text = format!(
        "
- {{id: first, shell: 'echo one', capture_output: said}}
- {{function: {{name: add, with: {{said: '${{said}}'}}}}, capture_output: more}}
- {{shell: 'echo ${{more}} >> {}'}}
",
        log.display()
    );
    let add = |attempt: FunctionAttempt| async move {
        let input: Value = attempt.input()?;
        Ok(Value::from(format!("{} two", input["said"].as_str().unwrap_or_default())))
    };
    let (store, functions) = (folder.path().join("store"), Functions::new().with("add", add));
    let runner = Runner::open_with(store, functions, env!("CARGO_BIN_EXE_undaunted"));
    let runner = runner.expect("a store");
    let running = runner.begin("both", &JobDescription::workflow(text)).expect("it begins");
    assert_eq!(running.wait().expect("it ends").status().word(), "completed");
    assert_eq!(std::fs::read_to_string(log).expect("written"), "one two\n");
}

#[test]
fn a_job_of_an_embedding_program_is_shown_and_explained_but_resumed_only_by_that_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let (tell, failed) = std::sync::mpsc::channel();
    let fails = move |_: FunctionAttempt| {
        tell.send(()).expect("a receiver");
        async { Err::<Value, _>(FunctionFailure::transient("the till is broken")) }
    };
    let functions = Functions::new().with("charge", fails);
    let runner = Runner::open(folder.path(), functions).expect("a store");
    let retries = serde_json::json!({"attempts": 3, "initial_delay": "1h"});
    let work = JobDescription::each("charge", ["ada"]).retry(retries);
    let running = runner.begin("monday", &work).expect("it begins");
    failed.recv().expect("a call");
    runner.suspend();
    running.wait().expect("it was suspended");

    let at = folder.path().to_str().expect("a path");
    let call = |words: &[&str]| undaunted_in(folder.path(), &[&["--store", at], words].concat());
    let shown = call(&["show", "monday", "--json"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    assert_eq!(shown["status"], "suspended");
    let explained = text(&call(&["explain", "monday/ada"]).stdout);
    assert!(explained.contains("the till is broken"), "{explained}");
    let before = text(&call(&["events", "monday", "--json"]).stdout);
    let resumed = call(&["resume", "monday"]);
    assert_eq!(resumed.status.code(), Some(2));
    let said = text(&resumed.stderr);
    assert!(said.contains("the function `charge` is not registered in this program"), "{said}");
    assert!(said.contains("resume job monday with the program that started it"), "{said}");
    assert_eq!(text(&call(&["events", "monday", "--json"]).stdout), before);
}
