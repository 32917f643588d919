//! Refusals of the keeper: malformed messages, a second engine, a second start, an unusable folder.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};

use rustix::process::{Pid, Signal, kill_process};
use undaunted_runner::keeper::{KeeperError, KeeperRefusal};
use undaunted_runner::spool::{CommandEnd, SpoolError};

use crate::fixture::{KeeperFixture, exited, refused};

#[test]
fn a_second_start_of_an_attempt_is_refused() {
    let (fixture, keeper) = KeeperFixture::started();
    for _ in 0..2 {
        keeper.run(fixture.shell(1, "echo ran >> ran; sleep 0.1")).unwrap();
    }
    assert_eq!(refused(&keeper), (Some(1), KeeperRefusal::Known));
    exited(&keeper, 1);
    keeper.run(fixture.shell(1, "echo ran >> ran")).unwrap();
    assert_eq!(refused(&keeper), (Some(1), KeeperRefusal::Known));
    assert_eq!(fixture.lines("ran"), 1);
}

#[test]
fn a_second_engine_is_refused() {
    let (fixture, _first) = KeeperFixture::started();
    let second = fixture.keeper_in(&fixture.spool(), &[]);
    assert!(matches!(second, Err(KeeperError::Refused(KeeperRefusal::Busy))), "{second:?}");
}

#[test]
fn a_keeper_that_is_stopped_is_named_and_answers_when_it_continues() {
    let (fixture, keeper) = KeeperFixture::started();
    keeper.run(fixture.shell(1, "echo $$ > up; sleep 1000")).unwrap();
    fixture.pid("up");
    let pid = keeper.pid();
    let number = Pid::from_raw(pid).unwrap();
    drop(keeper);
    kill_process(number, Signal::STOP).unwrap();
    let refused = fixture.keeper_in(&fixture.spool(), &[]);
    assert!(matches!(refused, Err(KeeperError::Hanging { pid: named }) if named == pid), "{refused:?}");
    kill_process(number, Signal::CONT).unwrap();
    let (again, _) = fixture.keeper();
    assert_eq!(again.pid(), pid);
}

#[test]
fn malformed_messages_are_refused_and_harmless() {
    let (fixture, keeper) = KeeperFixture::started();
    let hello = [5, 0, 0, 0, 0, 4, 0, 0, 0];
    let messages: [&[u8]; 6] = [
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        &[255; 64],
        &[1, 0, 0, 0, 99],
        // A greeting of another version, and one with something behind it.
        &[5, 0, 0, 0, 0, 9, 0, 0, 0],
        &[6, 0, 0, 0, 0, 4, 0, 0, 0, 0],
    ];
    for message in messages {
        let mut stream = UnixStream::connect(fixture.spool().join("socket")).unwrap();
        stream.write_all(message).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = vec![];
        // Only the bytes before the end of the connection matter.
        drop(stream.read_to_end(&mut answer));
        assert_eq!(answer.get(4), Some(&5), "{message:?} is answered by {answer:?}");
    }
    keeper.run(fixture.shell(1, "exit 2")).unwrap();
    assert_eq!(exited(&keeper, 1).end, CommandEnd::Code(2));
    // A command, so that the keeper stays when this engine disconnects.
    keeper.run(fixture.shell(3, "sleep 1000")).unwrap();
    drop(keeper);

    // The same from an engine that was admitted.
    let mut stream = UnixStream::connect(fixture.spool().join("socket")).unwrap();
    stream.write_all(&hello).unwrap();
    stream.write_all(&[3, 0, 0, 0, 1, 7, 7]).unwrap();
    stream.write_all(&[255, 255, 255, 255]).unwrap();
    let mut answer = vec![];
    drop(stream.read_to_end(&mut answer));
    drop(stream);
    // A welcome, everything on record, and two refusals; command 3 may report its start before or after them.
    let refusal = [7, 0, 0, 0, 0x82, 5, 0x82, 0xf6, 0x82, 0, 0x80];
    let refusals = answer.windows(refusal.len()).filter(|bytes| *bytes == refusal).count();
    assert_eq!(refusals, 2, "{answer:?}");
    let (keeper, _) = fixture.keeper();
    keeper.run(fixture.shell(2, "exit 3")).unwrap();
    assert_eq!(exited(&keeper, 2).end, CommandEnd::Code(3));
}

#[test]
fn an_engine_of_another_release_is_refused() {
    let (fixture, _keeper) = KeeperFixture::started();
    let mut stream = UnixStream::connect(fixture.spool().join("socket")).unwrap();
    stream.write_all(&[5, 0, 0, 0, 0, 1, 0, 0, 0]).unwrap();
    let mut answer = vec![];
    stream.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, [7, 0, 0, 0, 5, 0, 1, 0, 0, 0, 0]);
}

#[test]
fn a_keeper_of_another_release_is_detected() {
    let fixture = KeeperFixture::new();
    std::fs::create_dir_all(fixture.spool()).unwrap();
    let listener = UnixListener::bind(fixture.spool().join("socket")).unwrap();
    let keeper = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut greeting = [0; 9];
        stream.read_exact(&mut greeting).unwrap();
        let refused = [7, 0, 0, 0, 5, 0, 1, 0, 0, 0, 0];
        stream.write_all(&refused).unwrap();
        greeting
    });
    let refused = fixture.keeper_in(&fixture.spool(), &[]);
    let Err(KeeperError::Refused(why)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(why, KeeperRefusal::Version);
    // All that a keeper of another release has to understand.
    assert_eq!(keeper.join().unwrap(), [5, 0, 0, 0, 0, 4, 0, 0, 0]);
}

#[test]
fn a_spool_path_may_be_longer_than_a_socket_address() {
    let fixture = KeeperFixture::new();
    let deep = fixture.path(&["long-name-of-a-folder"; 12].join("/"));
    assert!(deep.as_os_str().len() > 200);
    let (keeper, _) = fixture.keeper_in(&deep, &[]).unwrap();
    keeper.run(fixture.shell(1, "exit 4")).unwrap();
    assert_eq!(exited(&keeper, 1).end, CommandEnd::Code(4));
    drop(keeper);
    let (_keeper, recovered) = fixture.keeper_in(&deep, &[]).unwrap();
    assert_eq!(recovered.known().count(), 1);
}

#[test]
fn a_spool_that_cannot_be_created_is_an_error() {
    let fixture = KeeperFixture::new();
    std::fs::write(fixture.path("file"), "").unwrap();
    let inside = fixture.keeper_in(&fixture.path("file/spool"), &[]);
    assert!(matches!(inside, Err(KeeperError::Spool(SpoolError::Create { .. }))), "{inside:?}");
    let nowhere = fixture.keeper_in(std::path::Path::new("/proc/no/spool"), &[]);
    assert!(matches!(nowhere, Err(KeeperError::Spool(SpoolError::Create { .. }))), "{nowhere:?}");
}

#[test]
fn a_keeper_that_cannot_start_reports_why() {
    let (fixture, keeper) = KeeperFixture::started();
    drop(keeper);
    // A folder where the log should be: it can neither be read nor replaced.
    let spool = fixture.path("odd");
    std::fs::create_dir_all(spool.join("log")).unwrap();
    let odd = fixture.keeper_in(&spool, &[]);
    let Err(KeeperError::GaveUp { complaint }) = &odd else {
        panic!("{odd:?}");
    };
    assert!(complaint.contains("cannot use the spool"), "{complaint}");
}

#[test]
fn a_program_that_is_not_a_keeper_is_an_error() {
    let fixture = KeeperFixture::new();
    let program = std::path::Path::new("/bin/echo");
    let odd = undaunted_runner::keeper::KeeperClient::start(program, &["hello".into()], &fixture.spool());
    assert!(matches!(odd, Err(KeeperError::GaveUp { .. })), "{odd:?}");
}
