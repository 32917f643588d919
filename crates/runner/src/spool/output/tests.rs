//! Segments on disk: kept output never changes.

use std::fs::File;
use std::io::Write;

use super::{FULL, OutputSegments};
use crate::{Spool, SpooledOutput};

fn spool() -> (tempfile::TempDir, Spool) {
    let folder = tempfile::tempdir().unwrap();
    let spool = Spool::open(folder.path()).unwrap();
    (folder, spool)
}

fn keep(segments: &OutputSegments, text: &str) -> SpooledOutput {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    segments.keep(&file, 0).unwrap()
}

fn place(kept: SpooledOutput) -> (u32, u64) {
    (kept.segment, kept.offset)
}

fn read(spool: &Spool, kept: SpooledOutput) -> String {
    String::from_utf8(spool.capture(&kept, 100).unwrap()).unwrap()
}

#[test]
fn the_next_keeper_continues_after_the_kept_output() {
    let (_folder, spool) = spool();
    let first = keep(&OutputSegments::open(&spool, false).unwrap(), "first");
    let second = keep(&OutputSegments::open(&spool, true).unwrap(), "second");
    assert_eq!((place(first), place(second)), ((1, 0), (1, 5)));
    assert_eq!(read(&spool, first), "first");
    assert_eq!(read(&spool, second), "second");
}

#[test]
fn a_full_segment_is_left_alone() {
    let (_folder, spool) = spool();
    let segments = OutputSegments::open(&spool, false).unwrap();
    let first = keep(&segments, "first");
    let file = File::options().write(true).open(spool.segment(1)).unwrap();
    file.set_len(FULL).unwrap();
    drop(segments);
    let segments = OutputSegments::open(&spool, true).unwrap();
    assert_eq!(place(keep(&segments, "second")), (2, 0));
    assert_eq!(place(keep(&segments, "third")), (2, 6));
    assert_eq!(file.metadata().unwrap().len(), FULL);
    assert_eq!(read(&spool, first), "first");
}

#[test]
fn reserved_space_that_was_never_filled_is_skipped_or_reused() {
    let (_folder, spool) = spool();
    let segments = OutputSegments::open(&spool, false).unwrap();
    segments.reserve(10).unwrap();
    let between = keep(&segments, "between");
    segments.reserve(10).unwrap();
    drop(segments);
    let after = keep(&OutputSegments::open(&spool, true).unwrap(), "after");
    assert_eq!((place(between), place(after)), ((1, 10), (1, 17)));
    assert_eq!(read(&spool, between), "between");
    assert_eq!(read(&spool, after), "after");
}

#[test]
fn after_another_boot_no_position_is_reused() {
    let (_folder, spool) = spool();
    let lost = keep(&OutputSegments::open(&spool, false).unwrap(), "lost");
    // It was never synced.
    File::options().write(true).open(spool.segment(1)).unwrap().set_len(0).unwrap();
    let segments = OutputSegments::open(&spool, false).unwrap();
    assert_eq!(place(keep(&segments, "others")), (2, 0));
    assert!(spool.capture(&lost, 100).is_err());
}
