//! A seed can be repeated.

use tempfile::TempDir;

use super::super::trace::TraceEvent;
use super::super::vfs;
use super::recorded;

/// The events without the bytes, some of which SQLite chooses at random.
fn shape(seed: u64) -> Vec<String> {
    assert!(vfs::install());
    let folder = TempDir::new().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let events = recorded(seed, &folder).unwrap().events;
    let shape = events.iter().map(|event| match event {
        TraceEvent::Write { file, at, bytes } => format!("{} bytes to {file} at {at}", bytes.len()),
        TraceEvent::Beside { .. } => "beside".to_owned(),
        event => format!("{event:?}"),
    });
    shape.collect()
}

#[test]
fn a_seed_gives_the_same_recording_again() {
    for seed in [1, 2, 4] {
        let (once, again) = (shape(seed), shape(seed));
        let pairs = once.iter().zip(&again);
        let differ = pairs.enumerate().find(|(_, (one, other))| one != other);
        assert_eq!(differ, None);
        assert_eq!(once.len(), again.len());
    }
}
