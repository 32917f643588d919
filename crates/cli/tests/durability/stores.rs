//! A store that cannot be used: the error says why, and nothing is lost.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::history::starts;
use crate::sandbox::{BINARY, Sandbox};

const ONE: &str = "[{shell: echo run >> log}]";

/// A small file system, on machines where the test may mount one.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new(test: &str, options: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]);
        let mounted = mount.arg(folder.path()).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self(folder));
        }
        println!("skipped: {test} needs root to mount a small disk");
        None
    }

    fn remount(&self, options: &str) {
        let mut mount = Command::new("mount");
        let options = format!("remount,{options}");
        mount.args(["-o", &options]).arg(self.0.path());
        assert!(mount.status().unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn a_store_path_that_is_a_file_is_reported() {
    let sandbox = Sandbox::of(ONE);
    fs::write(sandbox.store(), "something else").unwrap();
    sandbox.run().exits(7).err_contains("is not a folder");
    assert_eq!(fs::read_to_string(sandbox.store()).unwrap(), "something else");
    assert!(!sandbox.path("log").exists());
}

#[test]
fn a_read_only_store_is_reported() {
    let Some(disk) = SmallDisk::new("a_read_only_store_is_reported", "size=4m") else {
        return;
    };
    let sandbox = Sandbox::with_store(disk.0.path().join("store"));
    sandbox.write("w.yaml", ONE);
    sandbox.run().exits(0);
    sandbox.wait_for_no_keeper();
    disk.remount("ro");
    sandbox.run().exits(7).err_contains("read-only");
    assert_eq!(sandbox.lines("log"), ["run"]);
}

#[test]
fn a_store_of_a_later_release_is_refused_with_both_version_numbers() {
    let (sandbox, _) = Sandbox::run_workflow(ONE, 0);
    move_log_into_database(&sandbox);
    let path = sandbox.store().join("undaunted.db");
    let mut bytes = fs::read(&path).unwrap();
    // The user version in the SQLite header.
    bytes[60..64].copy_from_slice(&7_u32.to_be_bytes());
    fs::write(&path, &bytes).unwrap();
    for args in [&["run", "w.yaml"][..], &["ls"], &["resume", "@last"]] {
        let refused = sandbox.call(args).exits(7);
        assert!(refused.err.contains('7') && refused.err.contains('1'), "{refused:?}");
    }
    assert_eq!(sandbox.lines("log"), ["run"]);
    assert_eq!(fs::read(&path).unwrap(), bytes, "it was left alone");
}

/// Moves all records from the write-ahead log into the database file.
fn move_log_into_database(sandbox: &Sandbox) {
    sandbox.call(&["store", "compact"]).exits(0);
    // The rest of the log repeats the database.
    fs::remove_file(sandbox.store().join("undaunted.db-wal")).unwrap();
}

/// Flips a bit in the only occurrence of a text in the database.
fn damage(store: &Path, text: &str) {
    let path = store.join("undaunted.db");
    let mut bytes = fs::read(&path).unwrap();
    let positions: Vec<usize> = bytes
        .windows(text.len())
        .enumerate()
        .filter_map(|(place, part)| (part == text.as_bytes()).then_some(place))
        .collect();
    assert_eq!(positions.len(), 1, "{text} stands in {positions:?}");
    bytes[positions[0]] ^= 0x20;
    fs::write(&path, bytes).unwrap();
}

#[test]
fn a_corrupt_record_is_reported_with_its_place_and_nothing_before_it_is_lost() {
    let sandbox = Sandbox::of(
        "
- {shell: 'echo one | tr a-z A-Z', capture_output: first}
- {shell: 'echo two | tr a-z A-Z; echo ${first} >> log', capture_output: second}
- shell: echo ${second} >> log; echo $$ > up; exec sleep 1000
",
    );
    let engine = sandbox.spawn(&["run", "w.yaml"]);
    sandbox.pid("up");
    engine.kill();
    let whole = sandbox.events();
    move_log_into_database(&sandbox);
    damage(sandbox.store(), "TWO");
    let ended = sandbox.call(&["events", "@last", "--json"]).exits(7);
    let lines: Vec<_> = ended.out.lines().collect();
    assert!(!lines.is_empty() && lines.len() < whole.len(), "{ended:?}");
    for (line, event) in lines.iter().zip(&whole) {
        assert_eq!(&serde_json::from_str::<serde_json::Value>(line).unwrap(), event);
    }
    assert!(ended.out.contains("ONE"), "what is before it: {ended:?}");
    let record = (lines.len() + 1).to_string();
    assert!(ended.err.contains(&record), "record {record}: {ended:?}");
    // No record is skipped: a job is not resumed past a gap.
    for command in ["resume", "show"] {
        sandbox.call(&[command, "@last"]).exits(7).err_contains(&record);
    }
    assert_eq!(sandbox.lines("log"), ["ONE", "TWO"]);
    // An unreadable job does not hide the others.
    sandbox.write("w.yaml", ONE);
    sandbox.run().exits(0);
    let listed = sandbox.call(&["ls", "--json"]).exits(0);
    assert_eq!(listed.out.lines().count(), 2);
    assert!(listed.out.contains("unreadable"), "{listed:?}");
}

#[test]
fn a_full_disk_is_reported_and_the_job_continues_when_there_is_room() {
    let name = "a_full_disk_is_reported_and_the_job_continues_when_there_is_room";
    let Some(disk) = SmallDisk::new(name, "size=4m") else {
        return;
    };
    let sandbox = Sandbox::with_store(disk.0.path().join("store"));
    sandbox.write(
        "w.yaml",
        "
mode: mapreduce
map:
  input: {shell: seq 1 60}
  max_parallel: 2
  agent_template:
    - shell: echo ${item} >> log; until [ -e go ]; do sleep 0.01; done
",
    );
    let engine = sandbox.start_run();
    sandbox.wait_for_lines("log", 2);
    let filler = disk.0.path().join("filler");
    fill(&filler);
    sandbox.write("go", "");
    let refused = engine.wait().exits(7);
    assert!(refused.err.contains("full") || refused.err.contains("No space"), "{refused:?}");
    assert!(refused.err.contains("undaunted resume"), "{refused:?}");
    let so_far = sandbox.lines("log").len();
    assert!(so_far < 60, "it was never full");
    fs::remove_file(filler).unwrap();
    let report = sandbox.resume();
    assert_eq!(report.code, 0, "{report:?}");
    assert!(sandbox.runs("log").values().all(|runs| *runs == 1), "{:?}", sandbox.runs("log"));
    assert_eq!(sandbox.runs("log").len(), 60);
    let events = sandbox.lawful_events();
    assert_eq!(starts(&events).len(), 60);
}

#[test]
fn a_disk_too_full_for_the_output_of_a_command_fails_no_job() {
    let name = "a_disk_too_full_for_the_output_of_a_command_fails_no_job";
    let Some(disk) = SmallDisk::new(name, "size=6m") else {
        return;
    };
    let sandbox = Sandbox::with_store(disk.0.path().join("store"));
    // The journal grows first, so that its file has free pages and only the output finds no room.
    sandbox.write(
        "w.yaml",
        "
mode: mapreduce
map: {input: {shell: seq 1 200}, agent_template: [{shell: 'true'}]}
reduce:
  - shell: echo $$ > up; until [ -e go ]; do sleep 0.01; done
  - shell: echo run >> log; head -c 30000 /dev/zero | tr '\\0' x
    capture_output: big
    retry_config: {attempts: 2, backoff: fixed, initial_delay: 20ms}
  - shell: printf %s ${big} | wc -c > size
",
    );
    let engine = sandbox.start_run();
    sandbox.pid("up");
    let filler = disk.0.path().join("filler");
    fill(&filler);
    let full = fs::OpenOptions::new().write(true).open(&filler).unwrap();
    full.set_len(full.metadata().unwrap().len() - 45_000).unwrap();
    // An open file handle would keep the blocks allocated.
    drop(full);
    sandbox.write("go", "");
    let ended = engine.wait();
    fs::remove_file(filler).unwrap();
    if ended.code != 0 {
        ended.exits(7);
        sandbox.resume().exits(0);
    }
    assert_eq!(sandbox.lines("size"), ["30000"]);
}

/// Fills the disk.
fn fill(path: &Path) {
    let mut command = Command::new("/bin/sh");
    let script = "cat /dev/zero > \"$0\" 2>/dev/null; true";
    assert!(command.args(["-c", script]).arg(path).status().unwrap().success());
}

#[test]
fn a_store_is_found_by_its_variables_or_made() {
    let sandbox = Sandbox::of(ONE);
    let call = |variables: &[(&str, &str)]| {
        let mut command = Command::new(BINARY);
        for name in ["UNDAUNTED_STORE", "UNDAUNTED_HOME", "XDG_STATE_HOME", "HOME"] {
            command.env_remove(name);
        }
        command.args(["run", "w.yaml"]).envs(variables.iter().copied());
        command.current_dir(sandbox.path("")).output().unwrap().status.code()
    };
    let home = sandbox.path("home").display().to_string();
    let store = sandbox.path("store-of-its-own").display().to_string();
    let both = [("UNDAUNTED_STORE", &*store), ("UNDAUNTED_HOME", &home)];
    assert_eq!(call(&both), Some(0));
    assert!(sandbox.path("store-of-its-own/undaunted.db").exists());
    assert!(!sandbox.path("home").exists(), "the first that is set wins");
    assert_eq!(call(&[("UNDAUNTED_HOME", &home)]), Some(0));
    assert!(sandbox.path("home/undaunted.db").exists());
    assert_eq!(call(&[("XDG_STATE_HOME", &home)]), Some(0));
    assert!(sandbox.path("home/undaunted/undaunted.db").exists());
    assert_eq!(call(&[("HOME", &home)]), Some(0));
    assert!(sandbox.path("home/.local/state/undaunted/undaunted.db").exists());
    assert_eq!(call(&[]), Some(2));
    assert_eq!(sandbox.lines("log").len(), 4);
}
