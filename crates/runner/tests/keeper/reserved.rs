//! Reserved commands: begun when a slot is free, withdrawn, or dropped with the engine.

use undaunted_runner::keeper::{CommandSpec, KeeperClient, KeeperEvent, KeeperRefusal};
use undaunted_runner::spool::CommandFate;

use crate::fixture::{KeeperFixture, exited, is_alive, next_event, refused};

/// Writes its number to `ran` and waits for a file of that name.
fn waiting(fixture: &KeeperFixture, id: u64) -> CommandSpec {
    let script = format!("echo {id} >> ran; echo up > up-{id}; until [ -e go-{id} ]; do sleep 0.01; done");
    fixture.shell(id, &script)
}

fn reserve(keeper: &KeeperClient, spec: CommandSpec, slots: u32) {
    keeper.reserve(spec, slots).unwrap();
    keeper.flush();
}

fn go(fixture: &KeeperFixture, id: u64) {
    std::fs::write(fixture.path(&format!("go-{id}")), "").unwrap();
}

#[test]
fn a_reserved_command_begins_when_a_slot_is_free_and_in_order() {
    let (fixture, keeper) = KeeperFixture::started();
    keeper.run(waiting(&fixture, 1)).unwrap();
    fixture.line("up-1");
    for id in [2, 3] {
        reserve(&keeper, waiting(&fixture, id), 1);
    }
    assert_eq!(fixture.lines("ran"), 1);
    go(&fixture, 1);
    exited(&keeper, 1);
    fixture.line("up-2");
    assert_eq!(fixture.lines("ran"), 2, "there is one slot");
    for id in [2, 3] {
        go(&fixture, id);
        exited(&keeper, id);
    }
    assert_eq!(std::fs::read_to_string(fixture.path("ran")).unwrap(), "1\n2\n3\n");
}

#[test]
fn a_reserved_command_begins_at_once_if_there_is_a_slot_and_is_reserved_once() {
    let (fixture, keeper) = KeeperFixture::started();
    reserve(&keeper, waiting(&fixture, 1), 2);
    fixture.line("up-1");
    for _ in 0..2 {
        reserve(&keeper, waiting(&fixture, 2), 1);
    }
    assert_eq!(refused(&keeper), (Some(2), KeeperRefusal::Known));
    reserve(&keeper, waiting(&fixture, 1), 2);
    assert_eq!(refused(&keeper), (Some(1), KeeperRefusal::Known));
}

#[test]
fn what_is_withdrawn_or_cancelled_never_begins() {
    let (fixture, keeper) = KeeperFixture::started();
    keeper.run(waiting(&fixture, 1)).unwrap();
    for id in 2..=5 {
        reserve(&keeper, waiting(&fixture, id), 1);
    }
    keeper.cancel(3);
    assert_eq!(refused(&keeper), (Some(3), KeeperRefusal::Cancelled));
    keeper.withdraw();
    for id in [2, 4, 5] {
        assert_eq!(refused(&keeper), (Some(id), KeeperRefusal::Cancelled));
    }
    reserve(&keeper, waiting(&fixture, 6), 1);
    keeper.cancel_all(15);
    assert_eq!(refused(&keeper), (Some(6), KeeperRefusal::Cancelled));
    exited(&keeper, 1);
    keeper.run(waiting(&fixture, 7)).unwrap();
    go(&fixture, 7);
    exited(&keeper, 7);
    assert_eq!(std::fs::read_to_string(fixture.path("ran")).unwrap(), "1\n7\n");
}

#[test]
fn without_its_engine_a_reserved_command_does_not_begin_and_the_next_engine_does_not_find_it() {
    let (fixture, keeper) = KeeperFixture::started();
    keeper.run(waiting(&fixture, 1)).unwrap();
    let pid = fixture.path("up-1");
    KeeperFixture::eventually("the first command", || pid.exists().then_some(()));
    reserve(&keeper, waiting(&fixture, 2), 1);
    drop(keeper);
    let (keeper, recovered) = fixture.keeper();
    assert!(matches!(recovered.fate(1), CommandFate::Running(_)), "{recovered:?}");
    assert_eq!(recovered.fates.get(&2), None);
    go(&fixture, 1);
    exited(&keeper, 1);
    assert_eq!(fixture.lines("ran"), 1);
    assert!(is_alive(keeper.pid()));
}

#[test]
fn an_end_is_reported_before_the_beginning_that_follows_it() {
    let (fixture, keeper) = KeeperFixture::started();
    reserve(&keeper, fixture.shell(1, "exit 0"), 1);
    reserve(&keeper, fixture.shell(2, "exit 0"), 1);
    let mut seen = Vec::new();
    while seen.len() < 4 {
        match next_event(&keeper) {
            KeeperEvent::Began(running) => seen.push(("began", running.id)),
            KeeperEvent::Exited(ended) => seen.push(("ended", ended.id)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen, [("began", 1), ("ended", 1), ("began", 2), ("ended", 2)]);
}
