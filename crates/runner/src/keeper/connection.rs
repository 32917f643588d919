//! The keeper's side of a connection: one engine at a time, heard until it goes.
//!
//! All an engine has said before it died is heard before the next one is let in; otherwise a start
//! that lay in the socket could follow the news that it never began.

use std::io::{self, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use undaunted_engine::event::codec::read;

use super::frame::{Frame, framed, next_frame};
use super::greeting::{not_let_in, understood};
use super::message::{Refusal, Reply, Request};
use super::serve::thread;
use super::shared::Shared;
use crate::failpoint;
use crate::lock::locked;

/// How long a stranger may take to say who it is.
const GREETING: Duration = Duration::from_secs(10);
/// How long an engine waits for the last one to be noticed as gone.
const HANDOVER: Duration = Duration::from_secs(2);
/// How long the news that a command runs may wait for more to say; often that is its end.
const NO_HURRY: Duration = Duration::from_millis(10);
/// How much is gathered into one write.
const GATHERED: usize = 64 << 10;

/// Serves one connection to its end.
pub(crate) fn serve(shared: &Arc<Shared>, mut stream: UnixStream) {
    if let Err(why) = greet(shared, &stream) {
        // It may have gone; then nobody needs to know.
        drop(stream.write_all(&not_let_in(why)));
        return;
    }
    let (sender, replies) = channel();
    let known = {
        let mut ledger = locked(&shared.ledger);
        let queued = locked(&shared.state).runs.keys().copied().collect();
        ledger.connect(sender, shared.pid, queued)
    };
    // The engine waits for this, and so does everything it has to say.
    let known: Vec<u8> = known.iter().filter_map(framed).flatten().collect();
    // Without a second handle nothing could be answered: the engine sees the connection end.
    if say(&mut stream, &known).is_ok()
        && let Ok(writing) = stream.try_clone()
        && thread("answers", move || answer(writing, &replies)).is_ok()
    {
        hear(shared, stream);
    }
    shared.let_out();
}

fn greet(shared: &Shared, stream: &UnixStream) -> Result<(), Refusal> {
    let limited = stream.set_read_timeout(Some(GREETING));
    let mut reading = stream;
    let frame = next_frame(&mut reading);
    let (Ok(()), Ok(Frame::Message(payload))) = (limited, frame) else {
        return Err(Refusal::Malformed);
    };
    understood(&payload)?;
    if stream.set_read_timeout(None).is_err() || !shared.let_in(HANDOVER) {
        return Err(Refusal::Busy);
    }
    Ok(())
}

/// Does what the engine says until it goes.
fn hear(shared: &Shared, stream: UnixStream) {
    let mut stream = BufReader::new(stream);
    while let Ok(frame) = next_frame(&mut stream) {
        let payload = match frame {
            Frame::Message(payload) => payload,
            Frame::TooLong => return shared.refuse(None, Refusal::Malformed),
            Frame::Closed => return,
        };
        match read(&payload) {
            Ok(Request::Start(spec)) => shared.start(spec),
            Ok(Request::Cancel { id }) => shared.cancel(id),
            Ok(Request::CancelAll) => shared.cancel_all(),
            Ok(Request::Forget { id }) => locked(&shared.ledger).forget(id),
            Ok(Request::Trust) => locked(&shared.ledger).trust(),
            Ok(Request::Goodbye) => return,
            Err(_) => shared.refuse(None, Refusal::Malformed),
        }
    }
}

/// Writes replies until there are none or nobody reads. A thread of its own, so that an engine that
/// does not read holds up nothing.
fn answer(mut stream: UnixStream, replies: &Receiver<Reply>) {
    while let Ok(first) = replies.recv() {
        let until = Instant::now().checked_add(NO_HURRY);
        let mut is_urgent = !matches!(first, Reply::Running(_));
        let mut gathered = framed(&first).unwrap_or_default();
        while gathered.len() < GATHERED {
            let rest = match until {
                Some(until) if !is_urgent => until.saturating_duration_since(Instant::now()),
                _ => Duration::ZERO,
            };
            let Ok(next) = replies.recv_timeout(rest) else {
                break;
            };
            is_urgent |= !matches!(next, Reply::Running(_));
            gathered.extend(framed(&next).unwrap_or_default());
        }
        if say(&mut stream, &gathered).is_err() {
            break;
        }
    }
    // The engine is to see the end at once, whoever else still holds the connection.
    drop(stream.shutdown(std::net::Shutdown::Both));
}

fn say(stream: &mut UnixStream, words: &[u8]) -> io::Result<()> {
    failpoint::pass("answer-before");
    stream.write_all(words)?;
    failpoint::pass("answer-after");
    Ok(())
}
