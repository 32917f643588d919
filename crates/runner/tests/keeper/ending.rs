//! Ending commands with all of their processes: by a timeout, by cancelling, and after a failure.

use std::time::Duration;

use undaunted_runner::keeper::{CommandSpec, KeeperEvent, KeeperRefusal};
use undaunted_runner::spool::{CommandEnd, EndedBy};

use crate::fixture::{KeeperFixture, exited, is_alive, next_event};

const TREE: &str = "sh -c 'trap \"\" TERM; echo $$ > stubborn; while :; do sleep 1; done' & \
    setsid sh -c 'trap \"\" TERM; echo $$ > apart; while :; do sleep 1; done' & \
    echo $$ > up; wait";

fn tree(fixture: &KeeperFixture) -> [i32; 3] {
    ["stubborn", "apart", "up"].map(|name| fixture.pid(name))
}

#[test]
fn a_timeout_ends_children_that_ignore_term_and_that_have_left_the_session() {
    let (fixture, keeper) = KeeperFixture::started();
    let spec = CommandSpec { timeout: Some(Duration::from_secs(1)), ..fixture.shell(1, TREE) };
    keeper.run(spec).unwrap();
    let pids = tree(&fixture);
    let ended = exited(&keeper, 1);
    assert_eq!((ended.why, ended.end), (EndedBy::Timeout, CommandEnd::Signal(15)));
    assert!(!pids.into_iter().any(is_alive), "something is left");
    assert_eq!(ended.left, 0);
}

#[test]
fn a_command_that_cleans_up_on_term_has_its_grace() {
    let (fixture, keeper) = KeeperFixture::started();
    let script = "trap 'sleep 0.1; echo clean; exit 9' TERM; echo up > up; while :; do sleep 0.01; done";
    let spec = CommandSpec { grace: Duration::from_secs(50), ..fixture.shell(1, script) };
    keeper.run(spec).unwrap();
    fixture.line("up");
    keeper.cancel(1);
    let ended = exited(&keeper, 1);
    assert_eq!((ended.why, ended.end), (EndedBy::Cancelled, CommandEnd::Code(9)));
    assert_eq!(keeper.spool().capture(&ended.stdout, 99).unwrap(), b"clean\n");
}

#[test]
fn an_orphan_in_another_session_is_found_by_its_mark() {
    let (fixture, keeper) = KeeperFixture::started();
    // Another command runs, so the orphan is not attributed for being the only one.
    keeper.run(fixture.shell(2, "sleep 1000")).unwrap();
    let orphan =
        "setsid sh -c 'echo $$ > orphan; exec sleep 1000' & while [ ! -e orphan ]; do sleep 0.01; done";
    let script = format!("sh -c '{}'; echo up > up; sleep 1000", orphan.replace('\'', "'\\''"));
    keeper.run(fixture.shell(1, &script)).unwrap();
    fixture.line("up");
    let orphan = fixture.pid("orphan");
    keeper.cancel(1);
    assert_eq!(exited(&keeper, 1).why, EndedBy::Cancelled);
    assert!(!is_alive(orphan));
    keeper.cancel_all(15);
    assert_eq!(exited(&keeper, 2).why, EndedBy::Cancelled);
}

#[test]
fn an_orphan_without_a_mark_is_ended_if_only_one_command_can_have_left_it() {
    let script = "sh -c 'setsid env -i sh -c \"echo \\$\\$ > orphan; exec sleep 1000\" & \
        while [ ! -e orphan ]; do sleep 0.01; done'; echo up > up; sleep 1000";
    for beside in [false, true] {
        let (fixture, keeper) = KeeperFixture::started();
        if beside {
            keeper.run(fixture.shell(2, "echo up > other; sleep 1000")).unwrap();
            fixture.line("other");
        }
        keeper.run(fixture.shell(1, script)).unwrap();
        fixture.line("up");
        let orphan = fixture.pid("orphan");
        keeper.cancel(1);
        assert_eq!(exited(&keeper, 1).why, EndedBy::Cancelled);
        // With another command running, the orphan cannot be attributed, and is left alone.
        assert_eq!(is_alive(orphan), beside);
        crate::fixture::kill(orphan);
    }
}

#[test]
fn processes_of_a_failed_command_are_ended_before_its_end_is_reported() {
    let (fixture, keeper) = KeeperFixture::started();
    let script = "setsid sh -c 'echo $$ > apart; exec sleep 1000' & \
        sh -c 'trap \"\" TERM; echo $$ > stubborn; while :; do sleep 1; done' & \
        while [ ! -e apart ] || [ ! -e stubborn ]; do sleep 0.01; done; exit 1";
    keeper.run(fixture.shell(1, script)).unwrap();
    let ended = exited(&keeper, 1);
    assert_eq!((ended.why, ended.end, ended.left), (EndedBy::Itself, CommandEnd::Code(1), 0));
    assert!(!is_alive(fixture.pid("apart")) && !is_alive(fixture.pid("stubborn")));
}

#[test]
fn a_cancelled_start_either_never_began_or_has_an_end() {
    let (fixture, keeper) = KeeperFixture::started();
    for id in 0..100 {
        keeper.run(fixture.shell(id, "sleep 1000")).unwrap();
        keeper.cancel(id);
    }
    let mut over = 0;
    while over < 100 {
        match next_event(&keeper) {
            KeeperEvent::Exited(exited) => {
                assert_eq!(exited.why, EndedBy::Cancelled);
                over += 1;
            }
            KeeperEvent::Refused { id: Some(_), why } => {
                assert_eq!(why, KeeperRefusal::Cancelled);
                over += 1;
            }
            KeeperEvent::Began(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn cancel_all_ends_all_commands() {
    let (fixture, keeper) = KeeperFixture::started();
    for id in 0..20 {
        // A busy machine may take longer than the usual grace to end twenty commands by TERM.
        let grace = Duration::from_secs(50);
        keeper.run(CommandSpec { grace, ..fixture.shell(id, "echo up >> ups; sleep 1000") }).unwrap();
    }
    KeeperFixture::eventually("all commands", || (fixture.lines("ups") == 20).then_some(()));
    keeper.cancel_all(15);
    let mut ended = 0;
    while ended < 20 {
        if let KeeperEvent::Exited(exited) = next_event(&keeper) {
            assert_eq!((exited.why, exited.end), (EndedBy::Cancelled, CommandEnd::Signal(15)));
            ended += 1;
        }
    }
}

#[test]
fn a_command_that_keeps_forking_is_ended() {
    let (fixture, keeper) = KeeperFixture::started();
    let script = "trap '' TERM; echo up > up; while :; do (sleep 0.02 & sleep 0.02) & sleep 0.01; done";
    let spec = CommandSpec { timeout: Some(Duration::from_millis(300)), ..fixture.shell(1, script) };
    keeper.run(spec).unwrap();
    fixture.line("up");
    assert_eq!(exited(&keeper, 1).why, EndedBy::Timeout);
}
