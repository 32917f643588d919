//! The engine's side of the keeper: requests and events.
//!
//! Used from one thread. It blocks only on the socket, and has no state: what happens is reported by events,
//! and what happened before is in the spool. No request fails because the keeper has died: that is an event,
//! and the next keeper reports the fates of all commands.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};

use super::CommandSpec;
use super::frame::framed;
use super::message::{KeeperRefusal, KeeperReply, KeeperRequest};
use super::start::{KeeperGreeting, next_reply};
use crate::failpoint;
use crate::spool::{CommandExit, RecoveredSpool, RunningCommand, Spool, SpoolError};

#[derive(Debug)]
pub struct KeeperClient {
    stream: UnixStream,
    pub(super) events: Receiver<KeeperEvent>,
    spool: Spool,
    pid: i32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeeperEvent {
    Began(RunningCommand),
    /// A command has ended. Its end is on record in the spool until it is forgotten.
    Exited(CommandExit),
    /// A request was refused; a start that was refused never began.
    Refused {
        id: Option<u64>,
        why: KeeperRefusal,
    },
    /// The keeper has died; this is the last event. The next keeper reports the fates of its commands.
    Gone,
}

/// Why an engine has no keeper.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeeperError {
    #[error(transparent)]
    Spool(#[from] SpoolError),
    #[error("cannot start the keeper `{program}`")]
    Start { program: String, source: io::Error },
    /// The keeper started, and exited before it answered.
    #[error("the keeper exited: {complaint}")]
    GaveUp { complaint: String },
    /// There was no answer, or not one of a keeper.
    #[error("the keeper is not responding")]
    Silent(#[source] io::Error),
    #[error(transparent)]
    Refused(#[from] KeeperRefusal),
    #[error("the arguments and environment of attempt {id} are too large")]
    TooLarge { id: u64 },
    #[error("cannot read `/proc`")]
    Processes(#[source] io::Error),
}

impl KeeperClient {
    /// Passes all events of a keeper that has answered, with its spool, to `on_event`.
    pub(super) fn over(
        met: KeeperGreeting,
        spool: Spool,
        on_event: impl Fn(&Spool, KeeperEvent) -> bool + Send + 'static,
    ) -> io::Result<(Self, RecoveredSpool)> {
        let KeeperGreeting { stream: mut reading, pid, recovered, child } = met;
        let event_spool = spool.clone();
        let keeper = Self {
            stream: reading.get_ref().try_clone()?,
            // Receives nothing: the events go to `on_event`.
            events: channel().1,
            spool,
            pid,
        };
        let reader = std::thread::Builder::new().name("keeper".to_owned());
        reader.spawn(move || {
            loop {
                let event = next_event(&mut reading);
                let is_last = event == KeeperEvent::Gone;
                if !on_event(&event_spool, event) || is_last {
                    break;
                }
            }
            // If the keeper dies before this process, it has to be reaped.
            child.map(|mut child| child.wait())
        })?;
        Ok((keeper, recovered))
    }

    /// Runs a command, whose start must be on record. A refusal is reported as an event; the only error is a
    /// command that is too large for a message.
    pub fn run(&self, spec: CommandSpec) -> Result<(), KeeperError> {
        let id = spec.id;
        let framed = framed(&KeeperRequest::Start(spec)).ok_or(KeeperError::TooLarge { id })?;
        self.write(&framed);
        Ok(())
    }

    /// Ends a command and all processes it started: TERM, the grace, KILL. Its end is reported as an event; a
    /// command that had not begun is refused as cancelled.
    pub fn cancel(&self, id: u64) {
        self.send(&KeeperRequest::Cancel { id });
    }

    pub fn cancel_all(&self) {
        self.send(&KeeperRequest::CancelAll);
    }

    /// Lets the spool forget an attempt whose end is on record in the journal. Its output stays where it is.
    pub fn forget(&self, id: u64) {
        self.send(&KeeperRequest::Forget { id });
    }

    /// All recovered fates are on record in the journal, so from now on an attempt that the spool does not
    /// know never began. Until then, a spool that is new, was damaged or is from another boot stays
    /// uncertain.
    pub fn trust(&self) {
        self.send(&KeeperRequest::Trust);
    }

    pub const fn events(&self) -> &Receiver<KeeperEvent> {
        &self.events
    }

    pub const fn pid(&self) -> i32 {
        self.pid
    }

    pub const fn spool(&self) -> &Spool {
        &self.spool
    }

    /// Disconnects, and returns when the keeper has handled all requests. The keeper exits once its last
    /// command has ended; the spool keeps what is not forgotten for the next engine.
    pub fn disconnect(self) {
        self.send(&KeeperRequest::Disconnect);
        while self.events.recv().is_ok_and(|event| event != KeeperEvent::Gone) {}
    }

    fn send(&self, request: &KeeperRequest) {
        self.write(&framed(request).unwrap_or_default());
    }

    fn write(&self, framed: &[u8]) {
        failpoint::pass("told-before");
        // If this fails, the reader reports [`KeeperEvent::Gone`].
        drop((&self.stream).write_all(framed));
        failpoint::pass("told-after");
    }
}

fn next_event(reading: &mut impl Read) -> KeeperEvent {
    loop {
        return match next_reply(reading) {
            Ok(KeeperReply::Running(running)) => KeeperEvent::Began(running),
            Ok(KeeperReply::Exited(exited)) => KeeperEvent::Exited(exited),
            Ok(KeeperReply::Refused { id, why }) => KeeperEvent::Refused { id, why },
            Ok(KeeperReply::Welcome { .. } | KeeperReply::Vanished(_) | KeeperReply::Ready) => continue,
            Err(_) => KeeperEvent::Gone,
        };
    }
}

impl Drop for KeeperClient {
    fn drop(&mut self) {
        // Ends the reader's wait; an error means that the reader has ended.
        drop(self.stream.shutdown(Shutdown::Both));
    }
}
