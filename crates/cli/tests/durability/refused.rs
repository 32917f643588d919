//! Commands and inputs that are not there, told by name.

use crate::history::{one, text};
use crate::world::World;

#[test]
fn an_agent_that_is_not_installed_is_permanent_and_told() {
    let world = World::of(
        "
- claude: say hello
  retry_config: {attempts: 3, initial_delay: 3ms}
",
    );
    let report = world.call_with(&["run", "w.yaml", "--json"], &[("PATH", "/nowhere")]);
    let report = report.exits(1).json();
    assert_eq!((&report["reason"], &report["attempts"]), (&"permanent".into(), &1.into()));
    let error = text(&report["error"]);
    assert!(error.contains("`claude` is not installed"), "{error}");
    let failed = one(&world.events(), "attempt_failed").clone();
    assert_eq!(failed["exit_code"], 127);
}

#[test]
fn an_agent_is_given_its_prompt_as_one_argument() {
    let world = World::of(
        "
agents: {echoer: [/bin/sh, -c, 'printf \"%s\\n\" \"$1\" > log', _, '{prompt}']}
commands:
  - echoer: say $(hello) \"twice\"; now
",
    );
    world.run().exits(0);
    assert_eq!(world.lines("log"), ["say $(hello) \"twice\"; now"]);
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
        let world =
            World::of(&format!("[{{shell: {script}, retry_config: {{attempts: 1, initial_delay: 3ms}}}}]"));
        let report = world.run().exits(1).json();
        assert_eq!(report["attempts"], attempts, "{script}");
    }
}

#[test]
fn an_input_that_cannot_be_read_fails_the_job_with_its_name() {
    let world = World::of(
        "
mode: mapreduce
map: {input: nofile.json, agent_template: [{shell: echo >> log}]}
reduce: [{shell: echo >> log}]
",
    );
    let report = world.run().exits(1).json();
    assert_eq!(report["status"], "failed");
    assert!(text(&report["error"]).contains("nofile.json"), "{report}");
    assert!(!world.path("log").exists());
}

#[test]
fn an_input_command_that_fails_is_told_with_its_cause() {
    for (script, cause) in [("exit 3", "exit status 3"), ("echo trouble >&2; exit 1", "trouble")] {
        let world = World::of(&format!(
            "{{mode: mapreduce, map: {{input: {{shell: '{script}'}}, agent_template: [{{shell: 'true'}}]}}}}"
        ));
        let report = world.run().exits(1).json();
        assert!(text(&report["error"]).contains(cause), "{report}");
    }
}
