//! Keepers that are started before the spool of their job exists.

use std::fs;

use undaunted_runner::keeper::recover;
use undaunted_runner::spool::RecoveredSpool;

use crate::fixture::KeeperFixture;

#[test]
fn a_keeper_that_dies_before_it_is_ready_has_certainly_begun_nothing() {
    let fixture = KeeperFixture::new();
    fixture.waiting_keeper().begin(&fixture.spool()).unwrap().end();
    assert_eq!(recover(&fixture.spool()).unwrap(), RecoveredSpool::default());
}

#[test]
fn the_next_keeper_of_a_spool_without_attempts_is_certain_too() {
    let fixture = KeeperFixture::new();
    fixture.waiting_keeper().begin(&fixture.spool()).unwrap().end();
    let (_keeper, recovered) = fixture.keeper();
    assert_eq!(recovered, RecoveredSpool::default());
}

#[test]
fn a_spool_with_a_log_is_not_taken_for_that_of_a_new_job() {
    let (fixture, keeper) = KeeperFixture::started();
    drop(keeper);
    let log = fs::read(fixture.spool().join("log")).unwrap();
    let refused = fixture.waiting_keeper().begin(&fixture.spool());
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(fs::read(fixture.spool().join("log")).unwrap(), log);
}
