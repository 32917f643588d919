//! What commands write: kept, cut, limited, private.

use std::os::unix::fs::PermissionsExt;

use undaunted_runner::keeper::Spec;
use undaunted_runner::spool::{CaptureError, Why};

use crate::world::{World, exited};

const MEBIBYTE: usize = 1 << 20;

#[test]
fn of_a_long_output_the_first_and_the_last_mebibyte_are_kept() {
    let world = World::new();
    let (keeper, _) = world.keeper();
    let script = "head -c 1048576 /dev/zero | tr '\\0' a; head -c 3000000 /dev/zero | tr '\\0' b; head -c 1048576 /dev/zero | tr '\\0' c; echo e >&2";
    keeper.run(world.shell(1, script)).unwrap();
    let kept = exited(&keeper, 1).stdout;
    assert_eq!((kept.length, kept.dropped()), (5_097_152, 3_000_000));
    let output = keeper.spool().output(&kept).unwrap();
    assert_eq!(output.head, vec![b'a'; MEBIBYTE]);
    assert_eq!(output.tail, vec![b'c'; MEBIBYTE]);
    assert!(matches!(
        keeper.spool().capture(&kept, u64::MAX),
        Err(CaptureError::Dropped { .. })
    ));
    assert!(matches!(
        keeper.spool().capture(&kept, 1000),
        Err(CaptureError::TooLong { .. })
    ));
}

#[test]
fn what_is_to_be_captured_is_kept_whole() {
    let world = World::new();
    let (keeper, _) = world.keeper();
    let spec = Spec {
        capture: 6_000_000,
        ..world.shell(1, "head -c 5000000 /dev/zero")
    };
    keeper.run(spec).unwrap();
    let kept = exited(&keeper, 1).stdout;
    assert_eq!(
        keeper.spool().capture(&kept, 5_000_000).unwrap().len(),
        5_000_000
    );
}

#[test]
fn the_next_command_in_the_same_files_sees_nothing_of_the_last() {
    let world = World::new();
    let (keeper, _) = world.keeper();
    for id in 0..5 {
        let script = format!("echo {id}; echo error {id} >&2; ls -l /dev/fd/1 > /dev/null");
        keeper.run(world.shell(id, &script)).unwrap();
        let ended = exited(&keeper, id);
        let output = keeper.spool().output(&ended.stdout).unwrap();
        assert_eq!(output.head, format!("{id}\n").into_bytes());
        let error = keeper.spool().last_lines(&ended.stderr, 9).unwrap();
        assert_eq!(error, format!("error {id}"));
    }
    let pairs = std::fs::read_dir(world.spool().join("slots"))
        .unwrap()
        .count();
    assert_eq!(pairs, 2);
}

#[test]
fn the_last_lines_are_the_last_lines() {
    let world = World::new();
    let (keeper, _) = world.keeper();
    keeper
        .run(world.shell(1, "seq 1 100000 >&2; printf 'end\\377' >&2"))
        .unwrap();
    let kept = exited(&keeper, 1).stderr;
    let lines = keeper.spool().last_lines(&kept, 3).unwrap();
    assert_eq!(lines, "99999\n100000\nend\u{fffd}");
}

#[test]
fn who_writes_more_than_the_limit_is_ended() {
    let world = World::new();
    let (keeper, _) = world.keeper();
    let endless = Spec {
        output_limit: Some(100_000),
        ..world.shell(1, "while :; do head -c 10000 /dev/zero; sleep 0.01; done")
    };
    keeper.run(endless).unwrap();
    let ended = exited(&keeper, 1);
    assert_eq!(ended.why, Why::OutputLimit);
    assert!(ended.stdout.length > 100_000);
    // One that is quicker than the keeper's look has passed it all the same.
    let quick = Spec {
        output_limit: Some(10),
        ..world.shell(2, "echo 12345; echo 123456 >&2")
    };
    keeper.run(quick).unwrap();
    assert_eq!(exited(&keeper, 2).why, Why::OutputLimit);
    let exact = Spec {
        output_limit: Some(10),
        ..world.shell(3, "printf 1234567890")
    };
    keeper.run(exact).unwrap();
    assert_eq!(exited(&keeper, 3).why, Why::Itself);
}

#[test]
fn everything_in_the_spool_is_private() {
    let world = World::new();
    std::fs::create_dir(world.spool()).unwrap();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(world.spool(), open).unwrap();
    let (keeper, _) = world.keeper();
    keeper
        .run(world.shell(1, "umask > mask; echo secret"))
        .unwrap();
    exited(&keeper, 1);
    let mut folders = vec![world.spool()];
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
                assert_eq!(
                    found.permissions().mode() & 0o777,
                    0o600,
                    "{}",
                    path.display()
                );
                seen += 1;
            }
        }
    }
    assert!(
        seen >= 5,
        "log, lock, complaints, a pair, a segment: {seen}"
    );
    // The command's own files are its own affair.
    assert_ne!(world.line("mask"), "0077");
}

#[test]
fn forgotten_output_goes_away() {
    let world = World::new();
    let (keeper, _) = world.keeper();
    for id in 0..6 {
        keeper
            .run(world.shell(id, "head -c 3000000 /dev/zero"))
            .unwrap();
        exited(&keeper, id);
        keeper.forget(id).unwrap();
    }
    keeper.run(world.shell(9, "true")).unwrap();
    exited(&keeper, 9);
    let segments = std::fs::read_dir(world.spool().join("segments")).unwrap();
    let bytes: u64 = segments
        .map(|each| each.unwrap().metadata().unwrap().len())
        .sum();
    assert!(bytes <= 4_200_000, "{bytes} bytes are left");
}
