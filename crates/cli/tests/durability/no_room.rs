//! Full disks and read-only folders: reading needs no room, and removing makes room.
//!
//! The disks are real file systems, mounted in a namespace of their own.

use std::process::Command;

use crate::sandbox::{BINARY, Sandbox};

const WORKFLOW: &str = "
name: filling
mode: mapreduce
map:
  input: {shell: \"printf 'north\\\\nsouth\\\\n'\"}
  agent_template:
    commands:
      - shell: 'echo out of ${item}; echo broken >&2; test ${item} = north'
";

/// Prepares a disk of 24 MiB with three jobs, and the functions `fill` and `try`.
const DISK: &str = r#"
set -u
mount -t tmpfs -o size=24m tmpfs disk || exit 99
fill() { mountpoint -q disk || exit 98; : > disk/store/undaunted.db-shm; cat /dev/zero >> disk/filler 2>/dev/null; }
try() {
    "$BINARY" --store "$PWD/disk/store" "$@" >out 2>err </dev/null
    code=$?
    printf '%s %s\n' "$code" "$*"
    [ "$code" = 0 ] || cat err
}
"$BINARY" --store "$PWD/disk/store" run --quiet w.yaml >out 2>&1
"$BINARY" --store "$PWD/disk/store" exec -- sh -c 'head -c 300000 /dev/zero' >out 2>&1
"$BINARY" --store "$PWD/disk/store" run --quiet w.yaml >out 2>&1
while "$BINARY" --store "$PWD/disk/store" ls --json 2>&1 | grep -q '"running"'; do :; done
"#;

/// What the script prints in a mount namespace of its own; `None` where there cannot be one.
fn on_a_disk(test: &str, script: &str) -> Option<(Sandbox, String)> {
    let sandbox = Sandbox::new();
    sandbox.write("w.yaml", WORKFLOW);
    std::fs::create_dir(sandbox.path("disk")).unwrap();
    let mut shell = Command::new("unshare");
    shell.args(["-rm", "sh", "-c", &format!("{DISK}{script}")]).env("BINARY", BINARY).env("NO_COLOR", "1");
    let output = shell.current_dir(sandbox.path("")).output();
    let printed = output.as_ref().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    match (output.as_ref().map(|output| output.status.code()), printed) {
        (Ok(Some(0)), Ok(printed)) => Some((sandbox, printed)),
        (Ok(Some(1 | 99)), Ok(printed)) if printed.is_empty() => {
            println!("skipped: {test} needs to mount a small disk in a namespace");
            None
        }
        _ => panic!("{output:?}"),
    }
}

const READING: [&str; 14] = [
    "ls",
    "ls --json",
    "show @last",
    "show --json @last",
    "events @last",
    "explain @last",
    "explain @last/#1",
    "logs @last",
    "attempts @last",
    "dlq ls @last",
    "dlq group @last",
    "state export @last",
    "store check",
    "store path",
];

/// The reading commands, each on a line after a word.
fn lines(word: &str) -> String {
    let lines: Vec<String> = READING.iter().map(|command| format!("{word} {command}\n")).collect();
    lines.concat()
}

#[test]
fn jobs_are_shown_on_a_full_disk_and_removing_makes_room() {
    let reading = lines("try");
    let script = format!(
        "fill\n{reading}fill\ntry store compact\n\
         head -c 3000000 /dev/zero > disk/room && echo there is room\nfill\ntry rm @last --yes\nfill\n\
         try prune --older-than 0s --yes\nfill\ntry ls --json\ncat out\ntry store compact\n\
         ls disk/store/jobs | wc -l"
    );
    let Some((_sandbox, printed)) = on_a_disk("a full disk", &script) else { return };
    let mut expected = lines("0");
    expected.push_str(
        "0 store compact\nthere is room\n0 rm @last --yes\n0 prune --older-than 0s --yes\n0 ls --json\n0 store compact\n0\n",
    );
    assert_eq!(printed, expected);
}

/// A disk that is full of two jobs, whose log is long and not yet in the database: compacting needs more room than
/// the reserve is.
const SMALL_DISK: &str = r#"
fill_small() { cat /dev/zero >> disk/filler 2>/dev/null; }
small() {
    mount -t tmpfs -o size=1600k tmpfs disk || exit 98
    "$BINARY" --store "$PWD/disk/store" run --quiet w.yaml >out 2>&1
    "$BINARY" --store "$PWD/disk/store" run --quiet big.yaml >out 2>&1
    fill_small
}
sizes() { stat -c '%n %s' disk/store/reserve disk/store/undaunted.db disk/store/undaunted.db-wal; }
refuse() {
    sizes > before
    "$BINARY" --store "$PWD/disk/store" store compact >out 2>err; echo "$? store compact"
    grep -o 'cannot compact' err
    grep -o 'remove jobs with `undaunted rm` or `undaunted prune`' err
    sizes | cmp - before && echo nothing changed
    fill_small
}
"#;

#[test]
fn compacting_a_full_disk_leaves_removing_its_reserve() {
    let big = r#"
name: big
mode: mapreduce
map:
  input: {shell: "seq 45"}
  agent_template:
    commands:
      - shell: 'head -c 4500 /dev/urandom | base64 -w0 >&2; exit 1 # ${item}'
"#;
    let removing = "
small; refuse; refuse; try rm @last --yes
try store compact; sizes | grep reserve
small; refuse; try prune --older-than 0s --yes; try ls --json; cat out
try store compact; sizes | grep reserve
";
    let script = format!("cat > big.yaml <<'END'{big}END\n{SMALL_DISK}{removing}");
    let Some((_sandbox, printed)) = on_a_disk("a full disk", &script) else { return };
    let refused = "7 store compact\ncannot compact\nremove jobs with `undaunted rm` or `undaunted prune`\nnothing changed\n";
    let compacted = "0 store compact\ndisk/store/reserve 262144\n";
    let expected = format!(
        "{refused}{refused}0 rm @last --yes\n{compacted}{refused}0 prune --older-than 0s --yes\n0 ls --json\n{compacted}"
    );
    assert_eq!(printed, expected);
}

#[test]
fn jobs_are_shown_in_a_read_only_folder_and_nothing_is_changed() {
    let reading = lines("try");
    let script = format!(
        "mount -o remount,ro disk\nfind disk -type f | sort | xargs cksum > before\n{reading}\
         try run w.yaml\ntry rm @last --yes\n\
         find disk -type f | sort | xargs cksum | cmp - before && echo nothing changed\n\
         mount -o remount,rw disk\nrm disk/store/undaunted.db-shm\nmount -o remount,ro disk\n{reading}"
    );
    let Some((_sandbox, printed)) = on_a_disk("a read-only disk", &script) else { return };
    let read = lines("0");
    let (shown, rest) = printed.split_once("7 run w.yaml\n").expect("`run` is refused");
    assert_eq!(shown, read);
    let (refused, rest) = rest.split_once("nothing changed\n").expect("nothing is changed");
    assert_eq!(refused.matches("is read-only").count(), 2, "{refused}");
    assert!(refused.contains("7 rm @last --yes\n"), "{refused}");
    assert_eq!(rest, read);
}

#[test]
fn a_reader_on_a_full_disk_locks_no_writer_out() {
    let script = r#"
fill
"$BINARY" --store "$PWD/disk/store" exec -- true >out 2>err; echo "$?"
grep -o 'the disk is full' err | head -n 1
rm disk/filler
"$BINARY" --store "$PWD/disk/store" run --quiet slow.yaml >out 2>&1 &
engine=$!
while ! [ -e up ]; do :; done
kill -9 "$engine"; wait "$engine" 2>/dev/null
fill
"$BINARY" --store "$PWD/disk/store" events @last --follow > events 2>&1 &
reader=$!
while ! grep -q attempt_started events; do :; done
rm disk/filler
"$BINARY" --store "$PWD/disk/store" cancel @last >out 2>&1; echo "$?"
wait "$reader"; echo "$?"
grep -o job_cancelled events
"#;
    let script = format!("printf '[{{shell: \"touch up; sleep 1000\"}}]' > slow.yaml\n{script}");
    let Some((_sandbox, printed)) = on_a_disk("a full disk", &script) else { return };
    assert_eq!(printed, "125\nthe disk is full\n0\n0\njob_cancelled\n");
}
