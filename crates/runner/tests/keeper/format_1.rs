//! A spool of release 0.1: its attempts are recovered, and its outputs are read.

use std::time::{Duration, SystemTime};

use undaunted_runner::keeper::KeeperRefusal;
use undaunted_runner::spool::{
    CommandEnd, CommandExit, CommandFate, EndedBy, NotStartedCommand, RunningCommand, Spool, SpooledOutput,
    StartRefusal, VanishedCommand, reread_log,
};

use crate::fixture::{KeeperFixture, exited, refused};

const LOG: &[u8] = include_bytes!("../golden/spool-1/log");
const SEGMENT: &[u8] = include_bytes!("../golden/spool-1/segments/0");

/// A spool that release 0.1 left behind, with the boot id of this machine.
#[expect(clippy::indexing_slicing, reason = "the golden log is long enough")]
fn left() -> KeeperFixture {
    let fixture = KeeperFixture::new();
    std::fs::create_dir_all(fixture.spool().join("segments")).unwrap();
    let mut log = LOG.to_vec();
    let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap();
    // After length, checksum, tag, version and the length of the text.
    log[17..53].copy_from_slice(boot.trim_ascii());
    let end = 8 + usize::from(log[0]);
    let checksum = crc32fast::hash(&log[8..end]);
    log[4..8].copy_from_slice(&checksum.to_le_bytes());
    std::fs::write(fixture.spool().join("log"), log).unwrap();
    std::fs::write(fixture.spool().join("segments/0"), SEGMENT).unwrap();
    fixture
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_005 + seconds * 1000)
}

const NONE: SpooledOutput = kept(0, 0, 0, 0);
const OUT: SpooledOutput = kept(19, 19, 0, 0);
const ERR: SpooledOutput = kept(24, 24, 0, 19);
const CUT: SpooledOutput = kept(5_000_000_000, 3, 5, 43);

const fn kept(length: u64, head: u64, tail: u64, offset: u64) -> SpooledOutput {
    SpooledOutput { length, head, tail, segment: 0, offset }
}

/// The ends that release 0.1 has recorded.
fn ended() -> Vec<CommandExit> {
    let not_started = |errno, refusing| CommandEnd::NotStarted(NotStartedCommand { errno, refusing });
    let ends = [
        (CommandEnd::Code(0), EndedBy::Itself, [OUT, ERR], 2),
        (CommandEnd::Code(-1), EndedBy::OutputLimit, [CUT, NONE], 0),
        (CommandEnd::Signal(9), EndedBy::Timeout, [NONE; 2], 0),
        (CommandEnd::Signal(15), EndedBy::Cancelled, [NONE; 2], 0),
        (not_started(2, StartRefusal::Program), EndedBy::Itself, [NONE; 2], 0),
        (not_started(20, StartRefusal::WorkingDirectory), EndedBy::Itself, [NONE; 2], 0),
        (not_started(13, StartRefusal::Stdin), EndedBy::Itself, [NONE; 2], 0),
    ];
    let exited = (1..).zip(ends).map(|(id, (end, why, [stdout, stderr], left))| CommandExit {
        id,
        end,
        why,
        began: at(id),
        ended: at(id + 60),
        stdout,
        stderr,
        left,
    });
    exited.collect()
}

fn vanished(id: u64, began: SystemTime) -> VanishedCommand {
    VanishedCommand { id, began, stdout: NONE, stderr: NONE, ended: 0, survived: 0 }
}

#[test]
fn attempts_of_release_0_1_are_recovered() {
    let fixture = left();
    let (keeper, recovered) = fixture.keeper();
    assert_eq!((recovered.uncertain, recovered.damage), (false, None));
    for exited in ended() {
        assert_eq!(recovered.fate(exited.id), CommandFate::Exited(exited));
    }
    let recorded = VanishedCommand { stdout: CUT, ended: 3, survived: 1, ..vanished(8, at(8)) };
    assert_eq!(recovered.fate(8), CommandFate::Vanished(Some(recorded)));
    // A forgotten attempt, and attempts whose keeper has died.
    assert_eq!(recovered.fate(9), CommandFate::NeverBegan);
    for id in [10, u64::MAX] {
        let begun = vanished(id, at(id % 100));
        assert_eq!(recovered.fate(id), CommandFate::Vanished(Some(begun)));
    }
    assert_eq!(recovered.known().count(), 10);
    let output = keeper.spool().capture(&OUT, 99).unwrap();
    assert_eq!(output, b"words of attempt 1\n");
    let cut = keeper.spool().output(&CUT).unwrap();
    assert_eq!((cut.head, cut.tail), (b"aaa".to_vec(), b"zzzzz".to_vec()));

    // An attempt on record is not run again, and later output is kept after the existing one.
    keeper.run(fixture.shell(1, "echo again")).unwrap();
    assert_eq!(refused(&keeper), (Some(1), KeeperRefusal::Known));
    keeper.run(fixture.shell(11, "echo more")).unwrap();
    let more = exited(&keeper, 11);
    assert_eq!(more.stdout.offset, 51);
    for id in 1..=10 {
        keeper.forget(id);
    }
    keeper.disconnect();
    let recovered = undaunted_runner::keeper::recover(&fixture.spool()).unwrap();
    let known: Vec<u64> = recovered.known().map(|(id, _)| id).collect();
    assert_eq!(known, [11, u64::MAX]);
    assert_eq!(recovered.fate(11), CommandFate::Exited(more));
}

#[test]
fn a_spool_of_release_0_1_can_be_read_without_changing_it() {
    let fixture = left();
    let spool = Spool::open(&fixture.spool()).unwrap();
    for exited in ended() {
        assert_eq!(spool.peek(exited.id).unwrap(), CommandFate::Exited(exited));
    }
    let running = |id: u64, pid, slot| {
        let began = Some(at(id % 100));
        CommandFate::Running(RunningCommand { id, pid, slot: Some(slot), began })
    };
    assert_eq!(spool.peek(10).unwrap(), running(10, None, 10));
    let most = running(u64::MAX, Some(i32::MAX), u32::MAX);
    assert_eq!(spool.peek(u64::MAX).unwrap(), most);
    // Reading changes nothing.
    let log = std::fs::read(fixture.spool().join("log")).unwrap();
    assert_eq!(log[53..], LOG[53..]);
}

#[test]
fn a_log_of_release_0_1_is_rewritten_in_the_current_format() {
    let now = include_bytes!("../golden/spool-2/log");
    let (written, damage) = reread_log(LOG).unwrap();
    assert_eq!((written.as_slice(), damage), (now.as_slice(), None));
    assert_eq!(reread_log(now).unwrap(), (written, None));
}
