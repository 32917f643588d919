//! The keeper dies too: remaining processes of its commands are found and ended, and the attempts have
//! vanished.

use std::io::Write;

use undaunted_runner::keeper::{KeeperEvent, KeeperRefusal};
use undaunted_runner::spool::CommandFate;

use crate::fixture::{
    KeeperFixture, exited, is_alive, kill, kill_and_wait, next_event, refused, wait_until_gone,
};

#[test]
fn processes_of_a_dead_keeper_are_found_and_ended() {
    let (fixture, keeper) = KeeperFixture::started();
    keeper.trust();
    let script = "setsid sh -c 'echo $$ > apart; exec sleep 1000' & \
        sh -c 'trap \"\" TERM; echo $$ > stubborn; while :; do sleep 1; done' & \
        echo words; echo $$ > up; wait";
    keeper.run(fixture.shell(1, script)).unwrap();
    // In its group, but without its environment and later without its parent: found by the group alone.
    let bare = "echo $$ > leader; env -i sh -c 'echo $$ > bare; exec sleep 1000' & wait";
    keeper.run(fixture.shell(2, bare)).unwrap();
    let pids = ["up", "apart", "stubborn", "bare"].map(|name| fixture.pid(name));
    // Its process, and so its group, is on record.
    while !matches!(next_event(&keeper), KeeperEvent::Began(running) if running.id == 2) {}
    kill_and_wait(keeper.pid());
    wait_until_gone(&keeper);
    kill_and_wait(fixture.pid("leader"));
    assert!(pids.into_iter().all(is_alive));
    drop(keeper);

    let (keeper, recovered) = fixture.keeper();
    assert!(!pids.into_iter().any(is_alive), "something is left");
    let CommandFate::Vanished(Some(vanished)) = recovered.fate(1) else {
        panic!("{recovered:?}");
    };
    assert!(vanished.ended >= 3 && vanished.survived == 0, "{vanished:?}");
    assert_eq!(keeper.spool().capture(&vanished.stdout, 99).unwrap(), b"words\n");
    assert!(matches!(recovered.fate(2), CommandFate::Vanished(Some(_))));
    assert_eq!(recovered.fate(3), CommandFate::NeverBegan);
    // A vanished attempt is on record until it is forgotten, and is never run under its id.
    keeper.run(fixture.shell(1, "echo again > again")).unwrap();
    assert_eq!(refused(&keeper), (Some(1), KeeperRefusal::Known));
    assert!(!fixture.path("again").exists());
}

#[test]
fn recovery_ends_remaining_processes_without_a_new_keeper() {
    let (fixture, keeper) = KeeperFixture::started();
    keeper.run(fixture.shell(1, "echo $$ > up; exec sleep 1000")).unwrap();
    let command = fixture.pid("up");
    let told = undaunted_runner::keeper::recover(&fixture.spool());
    assert!(told.is_err(), "a keeper lives: {told:?}");
    kill_and_wait(keeper.pid());
    let recovered = undaunted_runner::keeper::recover(&fixture.spool()).unwrap();
    assert!(!is_alive(command));
    assert!(matches!(recovered.fate(1), CommandFate::Vanished(Some(_))));
}

#[test]
fn a_process_that_left_its_group_and_cleared_its_environment_is_not_found() {
    let (fixture, keeper) = KeeperFixture::started();
    let script = "setsid env -i sh -c 'echo $$ > lost; exec sleep 1000' & echo up > up; wait";
    keeper.run(fixture.shell(1, script)).unwrap();
    let lost = fixture.pid("lost");
    fixture.line("up");
    // Its parent dies with the keeper, so nothing ties it to the attempt any more.
    kill_and_wait(keeper.pid());
    let parent = parent(lost);
    kill_and_wait(parent);
    let recovered = undaunted_runner::keeper::recover(&fixture.spool()).unwrap();
    assert!(matches!(recovered.fate(1), CommandFate::Vanished(Some(_))));
    assert!(is_alive(lost), "better than the documents say: change them");
    kill(lost);
}

fn parent(pid: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, after) = stat.rsplit_once(") ").unwrap();
    after.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_command_never_runs_if_the_keeper_dies_before_creating_it() {
    let fixture = KeeperFixture::new();
    let (keeper, _) = fixture.keeper_with(&["UNDAUNTED_TEST_DIE=spawning:2"]);
    keeper.trust();
    keeper.run(fixture.shell(1, "echo 1 >> ran")).unwrap();
    exited(&keeper, 1);
    keeper.run(fixture.shell(2, "echo 2 >> ran")).unwrap();
    wait_until_gone(&keeper);
    let (keeper, recovered) = fixture.keeper();
    assert!(matches!(recovered.fate(1), CommandFate::Exited(_)));
    assert!(matches!(recovered.fate(2), CommandFate::Vanished(Some(_))));
    keeper.run(fixture.shell(2, "echo 2 >> ran")).unwrap();
    assert_eq!(refused(&keeper), (Some(2), KeeperRefusal::Known));
    assert_eq!(fixture.lines("ran"), 1);
}

#[test]
fn a_process_is_found_if_the_keeper_dies_right_after_creating_it() {
    let fixture = KeeperFixture::new();
    let (keeper, _) = fixture.keeper_with(&["UNDAUNTED_TEST_DIE=spawned:1"]);
    let script = "setsid sh -c 'echo $$ > up; exec sleep 1000'";
    keeper.run(fixture.shell(1, script)).unwrap();
    wait_until_gone(&keeper);
    // Its process is not on record; the mark in its environment finds it.
    let up = fixture.pid("up");
    let (_keeper, recovered) = fixture.keeper();
    assert!(matches!(recovered.fate(1), CommandFate::Vanished(Some(_))));
    assert!(!is_alive(up));
}

#[test]
fn an_end_is_unknown_if_the_keeper_dies_before_recording_it() {
    let fixture = KeeperFixture::new();
    let (keeper, _) = fixture.keeper_with(&["UNDAUNTED_TEST_DIE=exited:1"]);
    keeper.run(fixture.shell(1, "echo 1 >> ran; echo said")).unwrap();
    wait_until_gone(&keeper);
    let (_keeper, recovered) = fixture.keeper();
    assert!(matches!(recovered.fate(1), CommandFate::Vanished(Some(_))));
    assert_eq!(fixture.lines("ran"), 1);
}

#[test]
fn after_another_boot_the_spool_is_not_trusted() {
    let fixture = KeeperFixture::new();
    let (keeper, _) = fixture.keeper_with(&["UNDAUNTED_TEST_BOOT_ID=before"]);
    keeper.trust();
    keeper.run(fixture.shell(1, "exit 0")).unwrap();
    exited(&keeper, 1);
    kill_and_wait(keeper.pid());

    let (keeper, recovered) = fixture.keeper();
    assert!(recovered.uncertain);
    assert!(matches!(recovered.fate(1), CommandFate::Vanished(Some(_))));
    // Its start may have been on record and lost.
    assert_eq!(recovered.fate(2), CommandFate::Vanished(None));
    kill_and_wait(keeper.pid());
    // The uncertainty survives the keeper, and ends when the engine trusts the spool.
    let (keeper, recovered) = fixture.keeper();
    assert!(recovered.uncertain);
    keeper.trust();
    keeper.disconnect();
    let (_keeper, recovered) = fixture.keeper();
    assert_eq!(recovered.fate(2), CommandFate::NeverBegan);
    assert!(matches!(recovered.fate(1), CommandFate::Vanished(Some(_))));
}

#[test]
fn garbage_at_the_end_of_the_log_is_reported_and_earlier_records_are_kept() {
    let (fixture, keeper) = KeeperFixture::started();
    keeper.trust();
    keeper.run(fixture.shell(1, "exit 4")).unwrap();
    exited(&keeper, 1);
    kill_and_wait(keeper.pid());
    let log = fixture.spool().join("log");
    let length = std::fs::metadata(&log).unwrap().len();
    let mut file = std::fs::File::options().append(true).open(&log).unwrap();
    file.write_all(&[40, 0, 0, 0, 1, 2, 3, 4, 1]).unwrap();

    let (_keeper, recovered) = fixture.keeper();
    let damage = recovered.damage.unwrap();
    assert_eq!((damage.offset, damage.unread), (length, 9));
    assert!(matches!(recovered.fate(1), CommandFate::Exited(_)));
    assert_eq!(recovered.fate(2), CommandFate::Vanished(None));
}

#[test]
fn the_death_of_a_keeper_is_noticed_at_once() {
    let (_fixture, keeper) = KeeperFixture::started();
    kill(keeper.pid());
    assert_eq!(next_event(&keeper), KeeperEvent::Gone);
}

#[test]
fn a_keeper_killed_at_any_moment_reports_true_fates() {
    const COMMANDS: u64 = 40;
    for after in 0..20 {
        let (fixture, keeper) = KeeperFixture::started();
        keeper.trust();
        // Its end proves that the keeper has handled `trust` as well.
        keeper.run(fixture.shell(COMMANDS, "exit 0")).unwrap();
        exited(&keeper, COMMANDS);
        for id in 0..COMMANDS {
            keeper.run(fixture.shell(id, &format!("echo {id} >> ran; exit 1"))).unwrap();
        }
        let mut told = std::collections::BTreeSet::new();
        while told.len() < after {
            if let KeeperEvent::Exited(exited) = next_event(&keeper) {
                told.insert(exited.id);
            }
        }
        kill(keeper.pid());
        wait_until_gone(&keeper);
        drop(keeper);

        let (_keeper, recovered) = fixture.keeper();
        let ran = std::fs::read_to_string(fixture.path("ran")).unwrap_or_default();
        for id in 0..COMMANDS {
            let times = ran.lines().filter(|line| **line == *id.to_string()).count();
            let fate = recovered.fate(id);
            match fate {
                CommandFate::NeverBegan => assert_eq!(times, 0, "{id}"),
                CommandFate::Exited(_) => assert_eq!(times, 1, "{id}"),
                CommandFate::Vanished(Some(_)) => assert!(times <= 1, "{id}"),
                // Killed while it wrote a record across two pages: the log ends in half of one, and
                // then attempts that are not in it are uncertain.
                CommandFate::Vanished(None) if recovered.damage.is_some() => assert!(times <= 1, "{id}"),
                _ => panic!("{id}: {fate:?}"),
            }
            let is_known = matches!(fate, CommandFate::Exited(_));
            assert!(is_known || !told.contains(&id), "{id} was told and is lost");
        }
        // Nothing is left that could run later.
        assert_eq!(std::fs::read_to_string(fixture.path("ran")).unwrap_or_default(), ran);
    }
}
