//! The keeper's side of a connection: one engine at a time.
//!
//! Everything a dead engine has sent is handled before the next engine is admitted; otherwise a start in the
//! socket's buffer could run after the next engine was told that it never began.

use std::io::{self, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use undaunted_engine::event::codec::read;

use super::frame::{KeeperFrame, framed, next_frame};
use super::greeting::{framed_refusal, understood};
use super::message::{KeeperRefusal, KeeperReply, KeeperRequest};
use super::serve::thread;
use super::shared::KeeperShared;
use crate::failpoint;
use crate::locked;

/// How long a new connection may take to send its greeting.
const GREETING: Duration = Duration::from_secs(10);
/// How long a new engine waits until the keeper notices the death of the last one.
const HANDOVER: Duration = Duration::from_secs(2);
/// How long to delay the report that a command runs; often its end can be sent with it.
const NO_HURRY: Duration = Duration::from_millis(10);
/// How many bytes are gathered into one write.
const GATHERED: usize = 64 << 10;

pub(crate) fn serve(shared: &Arc<KeeperShared>, mut stream: UnixStream) {
    if let Err(why) = greet(shared, &stream) {
        // An error means that the engine has died.
        drop(stream.write_all(&framed_refusal(why)));
        return;
    }
    let (sender, replies) = channel();
    let known = {
        let mut ledger = locked(&shared.ledger);
        let queued = locked(&shared.state).runs.keys().copied().collect();
        ledger.connect(sender, shared.pid, queued)
    };
    // Sent at once, since the engine is waiting for it.
    let known: Vec<u8> = known.iter().filter_map(framed).flatten().collect();
    // Without a second handle nothing could be answered, so the connection is closed.
    if write(&mut stream, &known).is_ok()
        && let Ok(writing) = stream.try_clone()
        && thread("answers", move || answer(writing, &replies)).is_ok()
    {
        handle_requests(shared, stream);
    }
    shared.engine_gone();
}

fn greet(shared: &KeeperShared, stream: &UnixStream) -> Result<(), KeeperRefusal> {
    let limited = stream.set_read_timeout(Some(GREETING));
    let mut reading = stream;
    let frame = next_frame(&mut reading);
    let (Ok(()), Ok(KeeperFrame::Message(payload))) = (limited, frame) else {
        return Err(KeeperRefusal::Malformed);
    };
    understood(&payload)?;
    if stream.set_read_timeout(None).is_err() || !shared.admit_engine(HANDOVER) {
        return Err(KeeperRefusal::Busy);
    }
    Ok(())
}

/// Carries out requests until the engine disconnects.
fn handle_requests(shared: &KeeperShared, stream: UnixStream) {
    let mut stream = BufReader::new(stream);
    while let Ok(frame) = next_frame(&mut stream) {
        let payload = match frame {
            KeeperFrame::Message(payload) => payload,
            KeeperFrame::TooLong => return shared.refuse(None, KeeperRefusal::Malformed),
            KeeperFrame::Closed => return,
        };
        match read(&payload) {
            Ok(KeeperRequest::Start(spec)) => shared.start(spec),
            Ok(KeeperRequest::Cancel { id }) => shared.cancel(id),
            Ok(KeeperRequest::CancelAll) => shared.cancel_all(),
            Ok(KeeperRequest::Forget { id }) => locked(&shared.ledger).forget(id),
            Ok(KeeperRequest::Trust) => locked(&shared.ledger).trust(),
            Ok(KeeperRequest::Disconnect) => return,
            Err(_) => shared.refuse(None, KeeperRefusal::Malformed),
        }
    }
}

/// Writes replies until there are no more, or the engine has disconnected. Runs in its own thread, so that an
/// engine that does not read blocks nothing else.
fn answer(mut stream: UnixStream, replies: &Receiver<KeeperReply>) {
    while let Ok(first) = replies.recv() {
        let until = Instant::now().checked_add(NO_HURRY);
        let mut is_urgent = !matches!(first, KeeperReply::Running(_));
        let mut gathered = framed(&first).unwrap_or_default();
        while gathered.len() < GATHERED {
            let rest = match until {
                Some(until) if !is_urgent => until.saturating_duration_since(Instant::now()),
                _ => Duration::ZERO,
            };
            let Ok(next) = replies.recv_timeout(rest) else {
                break;
            };
            is_urgent |= !matches!(next, KeeperReply::Running(_));
            gathered.extend(framed(&next).unwrap_or_default());
        }
        if write(&mut stream, &gathered).is_err() {
            break;
        }
    }
    // Shuts down at once, since the reading thread holds another handle.
    drop(stream.shutdown(std::net::Shutdown::Both));
}

fn write(stream: &mut UnixStream, bytes: &[u8]) -> io::Result<()> {
    failpoint::pass("answer-before");
    stream.write_all(bytes)?;
    failpoint::pass("answer-after");
    Ok(())
}
