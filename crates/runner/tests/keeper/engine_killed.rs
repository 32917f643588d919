//! The engine is killed; its commands keep running, and the next engine collects them.

use std::collections::BTreeMap;
use std::process::Child;

use undaunted_runner::keeper::KeeperEvent;
use undaunted_runner::spool::{CommandEnd, CommandFate};

use crate::fixture::{KeeperFixture, exited, is_alive, next_event};

/// Kills an engine as `kill -9` does, and waits until it is gone.
fn kill_engine(engine: &mut Child) {
    engine.kill().unwrap();
    engine.wait().unwrap();
}

#[test]
fn a_command_outlives_its_engine_and_the_next_one_collects_it() {
    let fixture = KeeperFixture::new();
    let folder = fixture.path("").display().to_string();
    let script = format!(
        "cd {folder}; echo ran >> ran; echo up > up; while [ ! -e go ]; do sleep 0.01; done; echo said; echo why >&2; exit 5"
    );
    let mut engine = fixture.engine(&[&script]);
    fixture.line("up");
    kill_engine(&mut engine);

    let (keeper, recovered) = fixture.keeper();
    let CommandFate::Running(running) = recovered.fate(1) else {
        panic!("{recovered:?}");
    };
    assert!(is_alive(running.pid.unwrap()));
    std::fs::write(fixture.path("go"), "").unwrap();
    let ended = exited(&keeper, 1);
    assert_eq!(ended.end, CommandEnd::Code(5));
    let spool = keeper.spool();
    assert_eq!(spool.capture(&ended.stdout, 100).unwrap(), b"said\n");
    assert_eq!(spool.last_lines(&ended.stderr, 3).unwrap(), "why");
    assert_eq!(fixture.lines("ran"), 1);
    assert_eq!(recovered.fate(2), CommandFate::NeverBegan);
}

#[test]
fn a_command_that_ended_without_an_engine_is_read_from_the_log() {
    let fixture = KeeperFixture::new();
    let folder = fixture.path("").display().to_string();
    let script = format!(
        "cd {folder}; echo $PPID > keeper; while [ ! -e go ]; do sleep 0.01; done; echo said; exit 6"
    );
    let mut engine = fixture.engine(&[&script]);
    let keeper = fixture.pid("keeper");
    kill_engine(&mut engine);
    std::fs::write(fixture.path("go"), "").unwrap();
    // Without a command and an engine the keeper exits, and the log stays.
    KeeperFixture::eventually("the keeper's end", || (!is_alive(keeper)).then_some(()));

    for _ in 0..2 {
        // The end is reported to every engine until it is forgotten.
        let (keeper, recovered) = fixture.keeper();
        let CommandFate::Exited(ended) = recovered.fate(1) else {
            panic!("{recovered:?}");
        };
        assert_eq!(ended.end, CommandEnd::Code(6));
        assert_eq!(keeper.spool().capture(&ended.stdout, 9).unwrap(), b"said\n");
        assert!(!recovered.uncertain);
        keeper.disconnect();
    }
    let recovered = undaunted_runner::keeper::recover(&fixture.spool()).unwrap();
    assert!(matches!(recovered.fate(1), CommandFate::Exited(_)));

    let (keeper, _) = fixture.keeper();
    keeper.forget(1);
    keeper.disconnect();
    let (_keeper, recovered) = fixture.keeper();
    assert_eq!(recovered.fate(1), CommandFate::NeverBegan);
}

#[test]
fn a_timeout_is_enforced_without_an_engine() {
    let (fixture, keeper) = KeeperFixture::started();
    let pid = keeper.pid();
    keeper.trust();
    let mut spec = fixture.shell(1, "echo up > up; sleep 1000");
    spec.timeout = Some(std::time::Duration::from_millis(300));
    keeper.run(spec).unwrap();
    fixture.line("up");
    drop(keeper);
    KeeperFixture::eventually("the keeper's end", || (!is_alive(pid)).then_some(()));
    let (_keeper, recovered) = fixture.keeper();
    let CommandFate::Exited(ended) = recovered.fate(1) else {
        panic!("{recovered:?}");
    };
    assert_eq!(ended.why, undaunted_runner::spool::EndedBy::Timeout);
}

#[test]
fn an_engine_killed_among_many_starts_loses_nothing_and_repeats_nothing() {
    let fixture = KeeperFixture::new();
    let folder = fixture.path("").display().to_string();
    let scripts: Vec<String> =
        (1..=20).map(|id| format!("cd {folder}; echo {id} >> ran; exit {id}")).collect();
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    let mut engine = fixture.engine(&scripts);
    fixture.line("ran");
    kill_engine(&mut engine);
    let (keeper, recovered) = fixture.keeper();
    let mut ends = BTreeMap::new();
    let mut running = 0;
    for (id, fate) in recovered.known() {
        match fate {
            CommandFate::Running(_) => running += 1,
            CommandFate::Exited(ended) => drop(ends.insert(id, ended.end)),
            other => panic!("{id}: {other:?}"),
        }
    }
    while running > 0 {
        if let KeeperEvent::Exited(ended) = next_event(&keeper) {
            assert!(ends.insert(ended.id, ended.end).is_none());
            running -= 1;
        }
    }
    for (id, end) in &ends {
        assert_eq!(*end, CommandEnd::Code(i32::try_from(*id).unwrap()));
    }
    assert_eq!(fixture.lines("ran"), ends.len());
}
