//! The environment of commands: variables, secrets, directories, and ids that stay the same.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::history::{all, text};
use crate::sandbox::Sandbox;

#[test]
fn variables_are_declared_for_all_commands_or_for_one() {
    let sandbox = Sandbox::of(
        "
env: {SHARED: of all, OWN: of all}
commands:
  - {shell: 'echo $SHARED, $OWN, ${env.SHARED} >> log', env: {OWN: of one}}
  - {shell: 'echo $SHARED, $OWN, $OUTSIDE >> log'}
",
    );
    sandbox.call_with(&["run", "w.yaml"], &[("OUTSIDE", "around")]).exits(0);
    assert_eq!(sandbox.lines("log"), ["of all, of one, of all", "of all, of all, around"]);
}

#[test]
fn commands_run_where_run_was_called_or_where_they_say() {
    let sandbox = Sandbox::of(
        "
- shell: pwd -P >> log
- {shell: pwd -P >> ../log, working_dir: below}
- {shell: 'pwd -P >> \"$OLDPWD\"/log || pwd -P >> $BACK/log', working_dir: /, env: {BACK: '${env.BACK}'}}
",
    );
    fs::create_dir(sandbox.path("below")).unwrap();
    let here = fs::canonicalize(sandbox.path("")).unwrap();
    let here = here.to_str().unwrap();
    sandbox.call_with(&["run", "w.yaml"], &[("BACK", here), ("OLDPWD", here)]).exits(0);
    assert_eq!(sandbox.lines("log"), [here, &format!("{here}/below"), "/"]);
}

#[test]
fn a_missing_directory_is_reported() {
    let (_sandbox, report) = Sandbox::run_workflow("[{shell: 'true', working_dir: nowhere}]", 1);
    assert!(text(&report["error"]).contains("working directory"), "{report}");
}

#[test]
fn commands_know_job_item_attempt_token_and_correlation_id() {
    let sandbox = Sandbox::of(
        "
mode: mapreduce
map:
  input: {shell: printf 'a\\nb\\n'}
  max_parallel: 1
  agent_template:
    - id: one
      shell: |
        echo one $UNDAUNTED_JOB $UNDAUNTED_ITEM $UNDAUNTED_ATTEMPT $UNDAUNTED_RECEIPT_TOKEN $UNDAUNTED_CORRELATION_ID >> log
        test $UNDAUNTED_ATTEMPT -gt 2
      retry_config: {attempts: 2, backoff: fixed, initial_delay: 300ms}
    - id: two
      shell: echo two $UNDAUNTED_JOB $UNDAUNTED_ITEM $UNDAUNTED_ATTEMPT $UNDAUNTED_RECEIPT_TOKEN $UNDAUNTED_CORRELATION_ID >> log
",
    );
    // A kill in the middle changes none of the ids.
    sandbox.run_killed_at("retry_scheduled");
    let job = sandbox.resume().exits(0).job();
    let log = sandbox.lines("log");
    let rows: Vec<Vec<&str>> = log.iter().map(|line| line.split(' ').collect()).collect();
    assert_eq!(rows.len(), 8);
    assert!(rows.iter().all(|row| row[1] == job && row.len() == 6), "{rows:?}");
    let distinct = |item: &str, command: &str, column: usize| -> BTreeSet<&str> {
        let own = rows.iter().filter(|row| row[2] == item && (command.is_empty() || row[0] == command));
        own.map(|row| row[column]).collect()
    };
    let mut tokens = BTreeSet::new();
    for item in ["a", "b"] {
        assert_eq!(distinct(item, "one", 3), ["1", "2", "3"].into());
        assert_eq!(distinct(item, "", 5).len(), 1, "one correlation id for an item");
        for command in ["one", "two"] {
            let token = distinct(item, command, 4);
            assert_eq!(token.len(), 1, "one token for a command");
            tokens.extend(token);
        }
    }
    assert_eq!(tokens.len(), 4, "every command has its own token");
    let events = sandbox.events();
    for event in all(&events, "attempt_started") {
        let item = text(&event["item"]);
        assert_eq!(distinct(&item, "", 5), [event["correlation_id"].as_str().unwrap()].into());
    }
}

const SECRET: &str = "s3cr3t-of-the-test";
const KEPT: &str = "kept-in-a-file-8741";

/// Every command prints the secrets wherever it can.
const GOSSIP: &str = "
secrets:
  TOKEN: {env: OUTER_TOKEN}
  KEY: {file: key.txt}
commands:
  - shell: echo $TOKEN $KEY > seen; echo out $TOKEN; echo err $KEY >&2
    capture_output: told
  - shell: echo ${told}; echo $TOKEN >&2; exit 1
    retry_config: {attempts: 1, backoff: fixed, initial_delay: 2s}
    on_failure: {shell: 'echo $TOKEN >&2; exit 1'}
";

#[test]
fn secrets_reach_commands_and_nothing_else() {
    let sandbox = Sandbox::of(GOSSIP);
    sandbox.write("key.txt", &format!("{KEPT}\n"));
    let secrets = [("OUTER_TOKEN", SECRET)];
    let engine = sandbox.spawn_with(&["run", "w.yaml"], &secrets);
    sandbox.event("retry_scheduled");
    let killed = engine.kill();
    // Secrets are stored as references, so a resume needs them again.
    let refused = sandbox.resume();
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("OUTER_TOKEN"), "{refused:?}");
    let ended = sandbox.resume_with(&secrets).exits(1);
    assert_eq!(sandbox.lines("seen"), [format!("{SECRET} {KEPT}")]);
    let mut outputs = vec![killed.err, killed.out, ended.out, ended.err];
    for args in [
        &["events", "@last"][..],
        &["events", "@last", "--json"],
        &["show", "@last"],
        &["show", "@last", "--json"],
        &["ls"],
    ] {
        outputs.push(sandbox.stdout(args));
    }
    for text in outputs {
        assert!(!text.contains(SECRET) && !text.contains(KEPT), "{text}");
    }
    for (path, mode) in files_with_modes(sandbox.store()) {
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        let is_socket = fs::symlink_metadata(&path).is_ok_and(|it| !it.is_file() && !it.is_dir());
        assert!(is_socket || mode == expected, "{path:?} has mode {mode:o}");
    }
    assert_stores_none_of(&sandbox, &[SECRET, KEPT]);
    // The output was redacted before it was stored, so `logs` needs no secret.
    let printed = sandbox.call(&["logs", "@last"]).exits(0);
    assert!(printed.out.contains("out ***") && printed.err.contains("err ***"), "{printed:?}");
}

fn assert_stores_none_of(sandbox: &Sandbox, values: &[&str]) {
    for (path, _) in files_with_modes(sandbox.store()) {
        let bytes = fs::read(&path).unwrap_or_default();
        for value in values {
            let is_inside = bytes.windows(value.len()).any(|part| part == value.as_bytes());
            assert!(!is_inside, "{} holds a secret", path.display());
        }
    }
}

#[test]
fn a_rotated_secret_is_stored_neither_before_nor_after() {
    let sandbox = Sandbox::of(
        "
secrets: {TOKEN: {file: token}}
commands:
  - {id: first, shell: 'echo $TOKEN; echo run > first; until test -e go; do sleep 0.01; done; echo $TOKEN >&2; exit 1'}
",
    );
    sandbox.write("token", "the-old-value\n");
    let engine = sandbox.spawn(&["run", "w.yaml"]);
    sandbox.line("first");
    // The command outlives the engine, with the old value.
    let _ = engine.kill();
    sandbox.write("token", "the-new-value\n");
    sandbox.write("go", "");
    let ended = sandbox.resume().exits(1);
    assert!(text(&ended.json()["error"]).ends_with("***"), "{ended:?}");
    let again = sandbox.run().exits(1);
    assert!(text(&again.json()["error"]).ends_with("***"), "{again:?}");
    assert_stores_none_of(&sandbox, &["the-old-value", "the-new-value"]);
}

#[test]
fn a_secret_of_several_lines_is_found_however_its_lines_end() {
    let sandbox = Sandbox::of(
        "
secrets: {KEY: {file: key.pem}}
commands:
  - {id: leak, shell: 'printf \"%s\\n\" \"$KEY\" | tee /dev/stderr | sed \"s/$/\\r/\"', capture_output: leaked}
  - {id: use, shell: 'printf %s ${leaked} > seen'}
",
    );
    sandbox.write("key.pem", "BEGIN-4711\nline-4712\nEND-4713\n");
    sandbox.run().exits(0);
    assert_eq!(sandbox.lines("seen"), ["***"]);
    assert_stores_none_of(&sandbox, &["BEGIN-4711\nline-4712", "BEGIN-4711\r\nline-4712"]);
}

#[test]
fn a_secret_too_short_to_be_redacted_is_refused_before_anything_is_stored() {
    let sandbox = Sandbox::of("secrets: {PIN: {file: pin}}\ncommands: [{shell: 'true'}]\n");
    for value in ["", "123", "123\n\n"] {
        sandbox.write("pin", value);
        let refused = sandbox.run().exits(3);
        assert!(refused.err.contains("secret `PIN`: the value is shorter than 4 characters"), "{refused:?}");
    }
    assert!(!sandbox.store().exists(), "nothing is stored, not even a store");
    sandbox.write("pin", "1234");
    sandbox.run().exits(0);
}

/// All files and folders below a folder, with their permissions.
fn files_with_modes(folder: &Path) -> Vec<(PathBuf, u32)> {
    let mut paths = vec![folder.to_owned()];
    let mut at = 0;
    while let Some(next) = paths.get(at).cloned() {
        at += 1;
        if next.is_dir() {
            let entries = fs::read_dir(&next).unwrap();
            paths.extend(entries.map(|entry| entry.unwrap().path()));
        }
    }
    let mode = |path: &PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    paths.into_iter().map(|path| (path.clone(), mode(&path))).collect()
}

#[test]
fn a_secret_that_begins_with_another_is_not_shown_in_part() {
    let sandbox = Sandbox::of(
        "
secrets: {SHORT: {env: SHORT}, LONG: {env: LONG}}
commands: [{shell: 'echo $LONG $SHORT >&2; exit 1'}]
",
    );
    let secrets = [("SHORT", "s3cr3t"), ("LONG", "s3cr3t-and-more")];
    let report = sandbox.run_with(&secrets).exits(1).json();
    assert!(text(&report["error"]).ends_with("*** ***"), "{report}");
}

#[test]
fn a_missing_secret_is_reported_before_anything_is_stored() {
    let sandbox = Sandbox::of(GOSSIP);
    let refused = sandbox.run();
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("TOKEN"), "{refused:?}");
    assert!(!sandbox.store().join("jobs").exists());
    assert!(!sandbox.path("seen").exists());
}

#[test]
fn a_workflow_may_name_another_shell() {
    let (sandbox, _) =
        Sandbox::run_workflow("{shell: /bin/bash, commands: [{shell: 'a=(1 2 3); echo ${#a[@]} > log'}]}", 0);
    assert_eq!(sandbox.lines("log"), ["3"]);
}
