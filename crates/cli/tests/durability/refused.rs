//! Missing commands and inputs are reported by name.

use crate::history::{assert_contains, assert_fields, one, text};
use crate::sandbox::Sandbox;

#[test]
fn an_agent_that_is_not_installed_is_a_permanent_failure_and_named() {
    let sandbox = Sandbox::of(
        "
- claude: say hello
  retry_config: {attempts: 3, initial_delay: 3ms}
",
    );
    let report = sandbox.run_with(&[("PATH", "/nowhere")]);
    let report = report.exits(1).json();
    assert_fields!(report, {"reason": "permanent", "attempts": 1});
    assert_contains(&report["error"], "`claude` is not installed");
    let failed = one(&sandbox.events(), "attempt_failed").clone();
    assert_eq!(failed["exit_code"], 127);
}

#[test]
fn an_agent_is_given_its_prompt_as_one_argument() {
    let (sandbox, _) = Sandbox::run_workflow(
        "
agents: {echoer: [/bin/sh, -c, 'printf \"%s\\n\" \"$1\" > log', _, '{prompt}']}
commands:
  - echoer: say $(hello) \"twice\"; now
",
        0,
    );
    assert_eq!(sandbox.lines("log"), ["say $(hello) \"twice\"; now"]);
}

#[test]
fn not_found_and_not_executable_are_permanent_and_other_failures_are_not() {
    for (script, attempts) in [
        ("nosuchprogram", 1),
        ("./w.yaml", 1),
        ("exit 126", 1),
        ("exit 127", 1),
        ("exit 125", 2),
        ("exit 1", 2),
        ("kill -TERM $$", 2),
    ] {
        let sandbox =
            Sandbox::of(&format!("[{{shell: {script}, retry_config: {{attempts: 1, initial_delay: 3ms}}}}]"));
        let report = sandbox.run().exits(1).json();
        assert_eq!(report["attempts"], attempts, "{script}");
    }
}

#[test]
fn an_input_that_cannot_be_read_fails_the_job_with_its_name() {
    let (sandbox, report) = Sandbox::run_workflow(
        "
mode: mapreduce
map: {input: nofile.json, agent_template: [{shell: echo >> log}]}
reduce: [{shell: echo >> log}]
",
        1,
    );
    assert_eq!(report["status"], "failed");
    assert!(text(&report["error"]).contains("nofile.json"), "{report}");
    assert!(!sandbox.path("log").exists());
}

#[test]
fn a_failing_input_command_is_reported_with_its_cause() {
    for (script, cause) in [("exit 3", "exit status 3"), ("echo trouble >&2; exit 1", "trouble")] {
        let (_sandbox, report) = Sandbox::run_workflow(
            &format!(
                "{{mode: mapreduce, map: {{input: {{shell: '{script}'}}, agent_template: [{{shell: 'true'}}]}}}}"
            ),
            1,
        );
        assert!(text(&report["error"]).contains(cause), "{report}");
    }
}
