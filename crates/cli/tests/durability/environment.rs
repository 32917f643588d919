//! What commands run with: variables, secrets, directories, and names that stay the same.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::history::{all, text};
use crate::world::World;

#[test]
fn variables_are_declared_for_all_commands_or_for_one() {
    let world = World::of(
        "
env: {SHARED: of all, OWN: of all}
commands:
  - {shell: 'echo $SHARED, $OWN, ${env.SHARED} >> log', env: {OWN: of one}}
  - {shell: 'echo $SHARED, $OWN, $OUTSIDE >> log'}
",
    );
    world.call_with(&["run", "w.yaml"], &[("OUTSIDE", "around")]).exits(0);
    assert_eq!(world.lines("log"), ["of all, of one, of all", "of all, of all, around"]);
}

#[test]
fn commands_run_where_run_was_called_or_where_they_say() {
    let world = World::of(
        "
- shell: pwd -P >> log
- {shell: pwd -P >> ../log, working_dir: below}
- {shell: 'pwd -P >> \"$OLDPWD\"/log || pwd -P >> $BACK/log', working_dir: /, env: {BACK: '${env.BACK}'}}
",
    );
    fs::create_dir(world.path("below")).unwrap();
    let here = fs::canonicalize(world.path("")).unwrap();
    let here = here.to_str().unwrap();
    world.call_with(&["run", "w.yaml"], &[("BACK", here), ("OLDPWD", here)]).exits(0);
    assert_eq!(world.lines("log"), [here, &format!("{here}/below"), "/"]);
}

#[test]
fn a_missing_directory_is_told() {
    let world = World::of("[{shell: 'true', working_dir: nowhere}]");
    let report = world.run().exits(1).json();
    assert!(text(&report["error"]).contains("working directory"), "{report}");
}

#[test]
fn commands_know_job_item_attempt_token_and_correlation_id() {
    let world = World::of(
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
    // Killed in the middle: the names are the same afterwards.
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    world.event("retry_scheduled");
    engine.kill();
    let job = world.resume().exits(0).job();
    let log = world.lines("log");
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
    assert_eq!(tokens.len(), 4, "and another for every other");
    let events = world.events();
    for event in all(&events, "attempt_started") {
        let item = text(&event["item"]);
        assert_eq!(distinct(&item, "", 5), [event["correlation_id"].as_str().unwrap()].into());
    }
}

const SECRET: &str = "s3cr3t-of-the-test";
const KEPT: &str = "kept-in-a-file-8741";

/// Every command does its best to give the secrets away.
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
    let world = World::of(GOSSIP);
    world.write("key.txt", &format!("{KEPT}\n"));
    let given = [("OUTER_TOKEN", SECRET)];
    let engine = world.spawn_with(&["run", "w.yaml"], &given);
    world.event("retry_scheduled");
    let killed = engine.kill();
    // They are references: without them nothing goes on, and they are read again.
    let refused = world.resume();
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("OUTER_TOKEN"), "{refused:?}");
    let ended = world.call_with(&["resume", "@last", "--json"], &given).exits(1);
    assert_eq!(world.lines("seen"), [format!("{SECRET} {KEPT}")]);
    let mut said = vec![killed.err, killed.out, ended.out, ended.err];
    for args in [
        &["events", "@last"][..],
        &["events", "@last", "--json"],
        &["show", "@last"],
        &["show", "@last", "--json"],
        &["ls"],
    ] {
        said.push(world.call(args).exits(0).out);
    }
    for text in said {
        assert!(!text.contains(SECRET) && !text.contains(KEPT), "{text}");
    }
    let spool = world.folder_of(&world.job()).join("spool");
    for (path, mode) in tree(world.store()) {
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        let is_socket = fs::symlink_metadata(&path).is_ok_and(|it| !it.is_file() && !it.is_dir());
        assert!(is_socket || mode == expected, "{path:?} has mode {mode:o}");
        if path.is_file() && !path.starts_with(&spool) {
            let bytes = fs::read(&path).unwrap();
            for secret in [SECRET, KEPT] {
                let found = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
                assert!(!found, "{path:?} holds a secret");
            }
        }
    }
}

/// Everything in a folder, with its permissions.
fn tree(folder: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = vec![folder.to_owned()];
    let mut at = 0;
    while let Some(next) = found.get(at).cloned() {
        at += 1;
        if next.is_dir() {
            let entries = fs::read_dir(&next).unwrap();
            found.extend(entries.map(|entry| entry.unwrap().path()));
        }
    }
    let mode = |path: &PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    found.into_iter().map(|path| (path.clone(), mode(&path))).collect()
}

#[test]
fn a_secret_that_begins_with_another_is_not_shown_in_part() {
    let world = World::of(
        "
secrets: {SHORT: {env: SHORT}, LONG: {env: LONG}}
commands: [{shell: 'echo $LONG $SHORT >&2; exit 1'}]
",
    );
    let given = [("SHORT", "s3cr3t"), ("LONG", "s3cr3t-and-more")];
    let report = world.call_with(&["run", "w.yaml", "--json"], &given).exits(1).json();
    assert!(text(&report["error"]).ends_with("*** ***"), "{report}");
}

#[test]
fn a_secret_that_is_not_there_is_told_before_anything_is_stored() {
    let world = World::of(GOSSIP);
    let refused = world.run();
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("TOKEN"), "{refused:?}");
    assert!(!world.store().join("jobs").exists());
    assert!(!world.path("seen").exists());
}

#[test]
fn a_workflow_may_name_another_shell() {
    let world = World::of("{shell: /bin/bash, commands: [{shell: 'a=(1 2 3); echo ${#a[@]} > log'}]}");
    world.run().exits(0);
    assert_eq!(world.lines("log"), ["3"]);
}
