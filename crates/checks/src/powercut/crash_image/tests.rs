//! Files after a cut.

use std::sync::Arc;

use super::{FileChange, surviving_bytes};
use crate::random::SeededRandom;

fn write(at: usize, byte: u8, length: usize) -> FileChange {
    FileChange::Write { at, bytes: Arc::new(vec![byte; length]) }
}

#[test]
fn synced_bytes_that_are_not_written_again_stay() {
    let synced = vec![1; 10_000];
    for seed in 0..500 {
        let since = [write(4000, 2, 300), write(9000, 3, 5000)];
        let found = surviving_bytes(&mut SeededRandom::new(seed), &synced, &since);
        assert!(found.len() >= synced.len());
        assert_eq!(found.get(..4000), synced.get(..4000));
        assert_eq!(found.get(4300..9000), synced.get(4300..9000));
    }
}

#[test]
fn unsynced_bytes_are_whole_or_missing_or_torn() {
    let (mut whole, mut missing, mut torn) = (0, 0, 0);
    for seed in 0..500 {
        let found = surviving_bytes(&mut SeededRandom::new(seed), &[1; 512], &[write(0, 2, 512)]);
        if found == [2; 512] {
            whole += 1;
        } else if found == [1; 512] {
            missing += 1;
        } else {
            torn += 1;
        }
    }
    assert!(whole > 100 && missing > 100 && torn > 2, "{whole} {missing} {torn}");
}

#[test]
fn a_file_that_was_cut_has_one_of_its_lengths() {
    let since = [FileChange::Resize(0), write(0, 2, 600)];
    let mut lengths: Vec<usize> = (0..200)
        .map(|seed| {
            let found = surviving_bytes(&mut SeededRandom::new(seed), &[1; 2000], &since);
            found.len()
        })
        .collect();
    lengths.sort_unstable();
    lengths.dedup();
    assert_eq!(lengths, [0, 600, 2000]);
}

#[test]
fn a_file_may_be_cut_as_a_whole_and_not_at_all_and_in_parts() {
    let (mut whole, mut not_at_all, mut in_parts) = (0, 0, 0);
    for seed in 0..200 {
        let found = surviving_bytes(&mut SeededRandom::new(seed), &[1; 9000], &[FileChange::Resize(0)]);
        if found.is_empty() {
            whole += 1;
        } else if found == [1; 9000] {
            not_at_all += 1;
        } else if found.len() == 9000 && found.contains(&1) {
            in_parts += 1;
        }
    }
    assert!(whole > 20 && not_at_all > 20 && in_parts > 5, "{whole} {not_at_all} {in_parts}");
}
