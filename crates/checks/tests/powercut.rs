//! A few rounds of power cuts in every run, and proof that a broken store is noticed.

use undaunted_checks::powercut::{PowercutArgs, PowercutTally, SyncPromise, campaign};

fn cut(first_seed: u64, rounds: u64, promise: SyncPromise) -> PowercutTally {
    let args = PowercutArgs { rounds, first_seed, promise };
    let tally = campaign(&args, None, |_| {});
    assert!(tally.is_ok(), "{tally:?}");
    tally.unwrap_or_default()
}

#[test]
fn nothing_acknowledged_is_lost_by_a_power_cut() {
    // Two rounds with one call after the other, and one with concurrent handles.
    let tally = cut(1, 3, SyncPromise::Kept);
    assert_eq!(tally.violations, []);
    assert_eq!((tally.rounds, tally.lost), (3, 0));
    assert!(tally.cuts > 400, "only {} cuts", tally.cuts);
}

#[test]
fn the_same_seed_cuts_in_the_same_places() {
    let once = cut(4, 1, SyncPromise::Kept);
    assert_eq!(once, cut(4, 1, SyncPromise::Kept));
}

#[test]
fn a_store_that_does_not_sync_is_caught() {
    // Without syncs nothing is safe, so stores are damaged or empty.
    let tally = cut(1, 2, SyncPromise::NoSync);
    assert_eq!(tally.violations.len(), 2, "{tally:?}");
}

#[test]
fn a_store_that_syncs_too_late_is_caught_and_only_loses() {
    let tally = cut(1, 2, SyncPromise::LateSync);
    assert_eq!(tally.violations.len(), 2, "{tally:?}");
    for (seed, what) in tally.violations {
        // The store opens and is intact, but acknowledged data is missing.
        assert!(what.contains("missing") || what.contains("acknowledged"), "seed {seed}: {what}");
    }
}

#[test]
fn a_disk_that_loses_a_synced_page_is_noticed() {
    let tally = cut(1, 2, SyncPromise::LostPage);
    assert_eq!(tally.violations.len(), 2, "{tally:?}");
}
