//! Writing and reading the log, including damaged ones.

use std::time::{Duration, SystemTime};

use super::{FoundLog, SpoolLog};
use crate::spool::{SpoolEntries, SpoolHeader};
use crate::{CommandEnd, CommandExit, EndedBy, Spool, SpoolRecord, SpooledOutput};

fn header() -> SpoolHeader {
    SpoolHeader { boot: "boot".to_owned(), pid_space: 1, keeper: "name".to_owned(), pid: 7, uncertain: false }
}

fn spawning(id: u64) -> SpoolRecord {
    SpoolRecord::Spawning {
        id,
        at: SystemTime::UNIX_EPOCH + Duration::from_nanos(id),
        slot: 3,
        grace: Duration::from_secs(10),
    }
}

fn exited(id: u64) -> SpoolRecord {
    SpoolRecord::Exited(CommandExit {
        id,
        end: CommandEnd::Signal(9),
        why: EndedBy::Timeout,
        began: SystemTime::UNIX_EPOCH,
        ended: SystemTime::UNIX_EPOCH + Duration::from_secs(1),
        stdout: SpooledOutput::default(),
        stderr: SpooledOutput::default(),
        left: 0,
    })
}

fn spool() -> (tempfile::TempDir, Spool) {
    let folder = tempfile::tempdir().unwrap();
    let spool = Spool::open(folder.path()).unwrap();
    (folder, spool)
}

fn read(spool: &Spool) -> super::ReadLog {
    match FoundLog::at(&spool.log()).unwrap() {
        FoundLog::Log(story) => story,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_log_is_read_as_it_was_written() {
    let (_folder, spool) = spool();
    let mut log = SpoolLog::create(&spool, header(), SpoolEntries::default()).unwrap();
    for id in 0..4 {
        log.announce(&spawning(id)).unwrap();
    }
    log.note(&SpoolRecord::Spawned { id: 1, pid: 11 });
    log.note(&exited(2));
    log.note(&SpoolRecord::Forgotten { id: 3 });
    let story = read(&spool);
    assert_eq!((&story.header, story.damage), (&header(), None));
    assert_eq!(&story.entries, log.entries());
    assert_eq!(story.entries.iter().count(), 3);
}

#[test]
fn a_log_cut_off_anywhere_is_read_up_to_its_last_whole_record() {
    let (_folder, spool) = spool();
    let mut log = SpoolLog::create(&spool, header(), SpoolEntries::default()).unwrap();
    let mut ends = vec![std::fs::metadata(spool.log()).unwrap().len()];
    for id in 0..3 {
        log.announce(&spawning(id)).unwrap();
        ends.push(std::fs::metadata(spool.log()).unwrap().len());
    }
    let whole = std::fs::read(spool.log()).unwrap();
    for cut in 0..=whole.len() {
        std::fs::write(spool.log(), &whole[..cut]).unwrap();
        let cut = u64::try_from(cut).unwrap();
        let complete = ends.iter().filter(|end| **end <= cut).count();
        match FoundLog::at(&spool.log()).unwrap() {
            FoundLog::Log(story) => {
                assert_eq!(story.entries.iter().count(), complete - 1);
                assert_eq!(story.damage.is_none(), ends.contains(&cut));
            }
            FoundLog::Garbage(_) => assert_eq!(complete, 0),
            FoundLog::Nothing => panic!("the file is there"),
        }
    }
}

#[test]
fn an_altered_byte_is_detected_anywhere_in_the_log() {
    let (_folder, spool) = spool();
    let mut log = SpoolLog::create(&spool, header(), SpoolEntries::default()).unwrap();
    log.announce(&spawning(1)).unwrap();
    let whole = std::fs::read(spool.log()).unwrap();
    for at in 0..whole.len() {
        let mut altered = whole.clone();
        altered[at] ^= 0x40;
        std::fs::write(spool.log(), &altered).unwrap();
        match FoundLog::at(&spool.log()).unwrap() {
            FoundLog::Log(story) => assert!(story.damage.is_some(), "byte {at}"),
            FoundLog::Garbage(_) => {}
            FoundLog::Nothing => panic!("the file is there"),
        }
    }
}

#[test]
fn a_log_is_rewritten_when_most_of_it_is_forgotten() {
    let (_folder, spool) = spool();
    let mut log = SpoolLog::create(&spool, header(), SpoolEntries::default()).unwrap();
    log.announce(&spawning(0)).unwrap();
    log.note(&SpoolRecord::Spawned { id: 0, pid: 11 });
    for id in 1..10_000 {
        log.announce(&spawning(id)).unwrap();
        log.note(&exited(id));
        log.note(&SpoolRecord::Forgotten { id });
    }
    let length = std::fs::metadata(spool.log()).unwrap().len();
    assert!(length < 300_000, "{length} bytes");
    let story = read(&spool);
    assert_eq!(story.entries.iter().count(), 1);
    assert_eq!(&story.entries, log.entries());
}

#[test]
fn a_record_that_could_not_be_written_is_written_with_the_next() {
    let (_folder, spool) = spool();
    let mut log = SpoolLog::create(&spool, header(), SpoolEntries::default()).unwrap();
    log.announce(&spawning(1)).unwrap();
    // A file that cannot be written, as on a full disk.
    log.file = std::fs::File::open(spool.log()).unwrap();
    assert!(log.announce(&spawning(2)).is_err());
    log.file = std::fs::File::open(spool.log()).unwrap();
    log.is_behind = false;
    log.note(&exited(1));
    assert_eq!(read(&spool).entries.iter().count(), 1);
    log.announce(&spawning(3)).unwrap();
    let story = read(&spool);
    assert_eq!(&story.entries, log.entries());
    assert!(story.entries.get(2).is_none() && story.entries.get(3).is_some());
}
