//! The output of commands: how it is kept, cut, limited and protected.

use std::os::unix::fs::PermissionsExt;

use undaunted_runner::keeper::CommandSpec;
use undaunted_runner::spool::{CaptureError, CommandFate, EndedBy};

use crate::fixture::{KeeperFixture, exited, is_alive, kill_and_wait};

const MEBIBYTE: usize = 1 << 20;

#[test]
fn the_first_and_last_mebibyte_of_a_long_output_are_kept() {
    let (fixture, keeper) = KeeperFixture::started();
    let script = "head -c 1048576 /dev/zero | tr '\\0' a; head -c 3000000 /dev/zero | tr '\\0' b; head -c 1048576 /dev/zero | tr '\\0' c; echo e >&2";
    keeper.run(fixture.shell(1, script)).unwrap();
    let kept = exited(&keeper, 1).stdout;
    assert_eq!((kept.length, kept.dropped()), (5_097_152, 3_000_000));
    let output = keeper.spool().output(&kept).unwrap();
    assert_eq!(output.head, vec![b'a'; MEBIBYTE]);
    assert_eq!(output.tail, vec![b'c'; MEBIBYTE]);
    assert!(matches!(keeper.spool().capture(&kept, u64::MAX), Err(CaptureError::Dropped { .. })));
    assert!(matches!(keeper.spool().capture(&kept, 1000), Err(CaptureError::TooLong { .. })));
}

#[test]
fn a_captured_output_is_kept_whole() {
    let (fixture, keeper) = KeeperFixture::started();
    let spec = CommandSpec { capture: 6_000_000, ..fixture.shell(1, "head -c 5000000 /dev/zero") };
    keeper.run(spec).unwrap();
    let kept = exited(&keeper, 1).stdout;
    assert_eq!(keeper.spool().capture(&kept, 5_000_000).unwrap().len(), 5_000_000);
}

#[test]
fn a_reused_slot_has_no_output_of_the_last_command() {
    let (fixture, keeper) = KeeperFixture::started();
    for id in 0..5 {
        let script = format!("echo {id}; echo error {id} >&2; ls -l /dev/fd/1 > /dev/null");
        keeper.run(fixture.shell(id, &script)).unwrap();
        let ended = exited(&keeper, id);
        let output = keeper.spool().output(&ended.stdout).unwrap();
        assert_eq!(output.head, format!("{id}\n").into_bytes());
        let error = keeper.spool().last_lines(&ended.stderr, 9).unwrap();
        assert_eq!(error, format!("error {id}"));
    }
    let pairs = std::fs::read_dir(fixture.spool().join("slots")).unwrap().count();
    assert_eq!(pairs, 2);
}

#[test]
fn last_lines_returns_the_last_lines() {
    let (fixture, keeper) = KeeperFixture::started();
    keeper.run(fixture.shell(1, "seq 1 100000 >&2; printf 'end\\377' >&2")).unwrap();
    let kept = exited(&keeper, 1).stderr;
    let lines = keeper.spool().last_lines(&kept, 3).unwrap();
    assert_eq!(lines, "99999\n100000\nend\u{fffd}");
}

#[test]
fn a_command_that_exceeds_its_output_limit_is_ended() {
    let (fixture, keeper) = KeeperFixture::started();
    let endless = CommandSpec {
        output_limit: Some(100_000),
        ..fixture.shell(1, "while :; do head -c 10000 /dev/zero; sleep 0.01; done")
    };
    keeper.run(endless).unwrap();
    let ended = exited(&keeper, 1);
    assert_eq!(ended.why, EndedBy::OutputLimit);
    assert!(ended.stdout.length > 100_000);
    // A command that ends before the keeper checks has exceeded the limit as well.
    let quick = CommandSpec { output_limit: Some(10), ..fixture.shell(2, "echo 12345; echo 123456 >&2") };
    keeper.run(quick).unwrap();
    assert_eq!(exited(&keeper, 2).why, EndedBy::OutputLimit);
    let exact = CommandSpec { output_limit: Some(10), ..fixture.shell(3, "printf 1234567890") };
    keeper.run(exact).unwrap();
    assert_eq!(exited(&keeper, 3).why, EndedBy::Itself);
}

#[test]
fn everything_in_the_spool_is_private() {
    let fixture = KeeperFixture::new();
    std::fs::create_dir(fixture.spool()).unwrap();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(fixture.spool(), open).unwrap();
    let (keeper, _) = fixture.keeper();
    keeper.run(fixture.shell(1, "umask > mask; echo secret")).unwrap();
    exited(&keeper, 1);
    let mut folders = vec![fixture.spool()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        let mode = std::fs::metadata(&folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", folder.display());
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let found = std::fs::metadata(&path).unwrap();
            if found.is_dir() {
                folders.push(path);
            } else if found.is_file() {
                assert_eq!(found.permissions().mode() & 0o777, 0o600, "{}", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen >= 5, "log, lock, complaints, a pair, a segment: {seen}");
    // The umask of commands is unchanged.
    assert_ne!(fixture.line("mask"), "0077");
}

#[test]
fn output_stays_readable_after_its_attempt_is_forgotten() {
    let (fixture, keeper) = KeeperFixture::started();
    let mut places = vec![];
    for id in 0..6 {
        let script = format!("echo {id}; head -c 1500000 /dev/zero; echo error {id} >&2");
        keeper.run(fixture.shell(id, &script)).unwrap();
        let ended = exited(&keeper, id);
        places.push((ended.stdout, ended.stderr));
        keeper.forget(id);
    }
    for (id, (stdout, stderr)) in places.iter().enumerate() {
        // Known no more: the number may be used again.
        let id = u64::try_from(id).unwrap();
        keeper.run(fixture.shell(id, "echo again")).unwrap();
        exited(&keeper, id);
        let output = keeper.spool().capture(stdout, u64::MAX).unwrap();
        assert!(output.starts_with(format!("{id}\n\0").as_bytes()));
        let error = keeper.spool().last_lines(stderr, 9).unwrap();
        assert_eq!(error, format!("error {id}"));
    }
}

#[test]
fn consecutive_keepers_never_overwrite_kept_output() {
    let fixture = KeeperFixture::new();
    let mut places = vec![];
    // Each keeper ends in another way; the last one reads the output that all others have kept.
    for (id, boot) in [(0, "one"), (1, "one"), (2, "one"), (3, "two"), (4, "two")] {
        let boot = format!("UNDAUNTED_TEST_BOOT_ID={boot}");
        let (keeper, recovered) = fixture.keeper_with(&[&boot]);
        let pid = keeper.pid();
        if let CommandFate::Vanished(Some(vanished)) = recovered.fate(100 + id - 1) {
            places.push((vanished.stdout, "unfinished\n".to_owned()));
        }
        for (kept, text) in &places {
            let output = keeper.spool().capture(kept, 100).unwrap();
            assert_eq!(String::from_utf8(output).unwrap(), *text);
        }
        keeper.run(fixture.shell(id, &format!("echo of keeper {id}"))).unwrap();
        places.push((exited(&keeper, id).stdout, format!("of keeper {id}\n")));
        keeper.forget(id);
        if id == 1 {
            let script = "echo unfinished; echo up > up; sleep 1000";
            keeper.run(fixture.shell(101, script)).unwrap();
            fixture.line("up");
            kill_and_wait(pid);
        } else {
            keeper.disconnect();
            KeeperFixture::eventually("the keeper's end", || (!is_alive(pid)).then_some(()));
        }
    }
    let mut ranges: Vec<_> =
        places.iter().map(|(kept, _)| (kept.segment, kept.offset, kept.offset + kept.stored())).collect();
    ranges.sort_unstable();
    assert_eq!(ranges.len(), 6);
    for pair in ranges.windows(2) {
        assert!(pair[0].0 < pair[1].0 || pair[0].2 <= pair[1].1, "{pair:?}");
    }
}
