//! The output of commands that were given secrets: no value reaches a file.

use std::fs;
use std::path::Path;

use undaunted_runner::keeper::CommandSpec;
use undaunted_runner::spool::EndedBy;

use crate::fixture::{KeeperFixture, exited, kill_and_wait};

const SECRET: &str = "hunter2-of-the-test";

fn with_secret(fixture: &KeeperFixture, id: u64, script: &str) -> CommandSpec {
    let mut spec = CommandSpec { secrets: vec![SECRET.to_owned()], ..fixture.shell(id, script) };
    spec.env.push(("TOKEN".into(), SECRET.into()));
    spec
}

/// All files below a folder that contain these bytes.
fn holders(folder: &Path, bytes: &[u8]) -> Vec<std::path::PathBuf> {
    let mut found = vec![];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holders(&path, bytes));
        } else if fs::read(&path).is_ok_and(|text| text.windows(bytes.len()).any(|part| part == bytes)) {
            found.push(path);
        }
    }
    found
}

#[track_caller]
fn assert_redacted(fixture: &KeeperFixture) {
    assert_eq!(holders(&fixture.spool(), SECRET.as_bytes()), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_secret_written_in_two_pieces_reaches_no_file() {
    let (fixture, keeper) = KeeperFixture::started();
    let script =
        "printf 'it is hunter2'; echo e $TOKEN >&2; until test -e go; do :; done; echo -of-the-test.";
    keeper.run(with_secret(&fixture, 1, script)).unwrap();
    // The first piece was read: its beginning is in the slot, and what could become the secret is not.
    let out = fixture.spool().join("slots/1.out");
    KeeperFixture::eventually("the first piece", || (fs::read(&out).ok()? == b"it is ").then_some(()));
    fs::write(fixture.path("go"), "").unwrap();
    let ended = exited(&keeper, 1);
    assert_eq!(keeper.spool().capture(&ended.stdout, 100).unwrap(), b"it is ***.\n");
    assert_eq!(keeper.spool().capture(&ended.stderr, 100).unwrap(), b"e ***\n");
    assert_redacted(&fixture);
}

#[test]
fn a_beginning_of_a_secret_that_stays_one_is_part_of_the_output() {
    let (fixture, keeper) = KeeperFixture::started();
    keeper.run(with_secret(&fixture, 1, "printf hunter2")).unwrap();
    let ended = exited(&keeper, 1);
    assert_eq!(keeper.spool().capture(&ended.stdout, 100).unwrap(), b"hunter2");
}

#[test]
fn a_long_output_with_secrets_is_kept_as_any_other() {
    let (fixture, keeper) = KeeperFixture::started();
    let script = "i=0; while test $i -lt 20000; do echo \"$i $TOKEN ........................................\
        ........................................................................................\"; \
        i=$((i + 1)); done";
    let spec = CommandSpec { capture: 16 << 20, ..with_secret(&fixture, 1, script) };
    keeper.run(spec).unwrap();
    let ended = exited(&keeper, 1);
    let text = String::from_utf8(keeper.spool().capture(&ended.stdout, 16 << 20).unwrap()).unwrap();
    assert!((0..20_000).eq(text.lines().map(|line| {
        let (number, rest) = line.split_once(" *** ").unwrap();
        assert_eq!(rest.len(), 128);
        number.parse::<i32>().unwrap()
    })));
    // Without a capture the middle is dropped.
    keeper.run(with_secret(&fixture, 2, script)).unwrap();
    assert!(exited(&keeper, 2).stdout.dropped() > 0);
    assert_redacted(&fixture);
}

#[test]
fn a_process_left_behind_keeps_its_output_and_its_secrets_stay_hidden() {
    let (fixture, keeper) = KeeperFixture::started();
    let script =
        "(until test -e go; do sleep 0.01; done; echo late $TOKEN && echo alive > late) & echo $TOKEN";
    keeper.run(with_secret(&fixture, 1, script)).unwrap();
    let ended = exited(&keeper, 1);
    assert!(ended.left > 0, "the loop, and perhaps its `sleep`");
    assert_eq!(keeper.spool().capture(&ended.stdout, 100).unwrap(), b"***\n");
    fs::write(fixture.path("go"), "").unwrap();
    assert_eq!(fixture.line("late"), "alive");
    keeper.run(with_secret(&fixture, 2, "echo next")).unwrap();
    let next = exited(&keeper, 2);
    assert_eq!(keeper.spool().capture(&next.stdout, 100).unwrap(), b"next\n");
    assert_redacted(&fixture);
}

#[test]
fn limits_hold_for_commands_with_secrets() {
    let (fixture, keeper) = KeeperFixture::started();
    let endless = CommandSpec { output_limit: Some(100_000), ..with_secret(&fixture, 1, "yes $TOKEN") };
    keeper.run(endless).unwrap();
    assert_eq!(exited(&keeper, 1).why, EndedBy::OutputLimit);
    let quick =
        CommandSpec { output_limit: Some(10), ..with_secret(&fixture, 2, "echo 12345; echo 123456 >&2") };
    keeper.run(quick).unwrap();
    assert_eq!(exited(&keeper, 2).why, EndedBy::OutputLimit);
    let timeout = Some(std::time::Duration::from_millis(50));
    keeper.run(CommandSpec { timeout, ..with_secret(&fixture, 3, "yes $TOKEN") }).unwrap();
    assert_eq!(exited(&keeper, 3).why, EndedBy::Timeout);
    assert_redacted(&fixture);
}

#[test]
fn a_keeper_that_is_killed_leaves_no_secret_behind() {
    let fixture = KeeperFixture::new();
    let (keeper, _) = fixture.keeper();
    let script = "echo $PPID > keeper; while :; do echo $TOKEN; done";
    keeper.run(with_secret(&fixture, 1, script)).unwrap();
    let out = fixture.spool().join("slots/1.out");
    KeeperFixture::eventually("an output", || (fs::metadata(&out).ok()?.len() > 10_000).then_some(()));
    kill_and_wait(fixture.pid("keeper"));
    assert_redacted(&fixture);
    drop(keeper);
    let (_keeper, recovered) = fixture.keeper();
    assert!(recovered.known().any(|(id, _)| id == 1));
    assert_redacted(&fixture);
}
