//! The engine's side of the keeper: what it may ask for, and what it hears.
//!
//! Used from one thread. It waits for nothing but the socket, and keeps no state: what happened is
//! in the events, and what happened before is in the spool. So is that the keeper has gone: no request
//! fails for that, since whoever asks hears of it and asks the next one what became of everything.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};

use super::frame::framed;
use super::message::{Refusal, Reply, Request};
use super::start::{Met, next_reply};
use super::{KeeperError, Spec};
use crate::failpoint;
use crate::spool::{Exited, Recovered, RunningCommand, Spool};

/// A connection to the keeper of a spool.
#[derive(Debug)]
pub struct Keeper {
    stream: UnixStream,
    pub(super) events: Receiver<KeeperEvent>,
    spool: Spool,
    pid: i32,
}

/// What a keeper tells its engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeeperEvent {
    /// A process was made.
    Began(RunningCommand),
    /// A command has ended; that is on record in the spool until it is forgotten.
    Exited(Exited),
    /// Something was not done. For a start: it never began.
    Refused {
        /// The attempt, if it is about one.
        id: Option<u64>,
        why: Refusal,
    },
    /// The keeper has gone, and nothing more comes. Starting it again tells what became of its
    /// commands.
    Gone,
}

impl Keeper {
    /// Speaks to a keeper that has answered; what it says is told, with the spool it is about.
    pub(super) fn over(
        met: Met,
        spool: Spool,
        tell: impl Fn(&Spool, KeeperEvent) -> bool + Send + 'static,
    ) -> io::Result<(Self, Recovered)> {
        let Met {
            stream: mut reading,
            pid,
            recovered,
            child,
        } = met;
        let told_of = spool.clone();
        let keeper = Self {
            stream: reading.get_ref().try_clone()?,
            // Whoever hears everything elsewhere hears nothing here.
            events: channel().1,
            spool,
            pid,
        };
        let reader = std::thread::Builder::new().name("keeper".to_owned());
        reader.spawn(move || {
            loop {
                let event = next_event(&mut reading);
                let is_last = event == KeeperEvent::Gone;
                if !tell(&told_of, event) || is_last {
                    break;
                }
            }
            // It outlives us or dies before us; in the latter case somebody must take note.
            child.map(|mut child| child.wait())
        })?;
        Ok((keeper, recovered))
    }

    /// Has a command run. Its start must be on record first; if it is refused, an event says so.
    ///
    /// # Errors
    ///
    /// When the command is too large to be told.
    pub fn run(&self, spec: Spec) -> Result<(), KeeperError> {
        let id = spec.id;
        let framed = framed(&Request::Start(spec)).ok_or(KeeperError::TooLarge { id })?;
        self.tell(&framed);
        Ok(())
    }

    /// Ends a command with all it started: TERM, its grace, KILL. Its end comes as an event; one
    /// that had not begun is refused as cancelled.
    pub fn cancel(&self, id: u64) {
        self.send(&Request::Cancel { id });
    }

    pub fn cancel_all(&self) {
        self.send(&Request::CancelAll);
    }

    /// Lets the spool forget an attempt whose end is on record elsewhere. Its output stays where it
    /// is, for whoever knows the place.
    pub fn forget(&self, id: u64) {
        self.send(&Request::Forget { id });
    }

    /// Says that all fates of the recovery are on record elsewhere: from now on, an attempt the
    /// spool does not know never began. Without it nobody vouches for a spool that is new, was
    /// damaged or is from another boot.
    pub fn trust(&self) {
        self.send(&Request::Trust);
    }

    /// What the keeper tells, as it comes.
    pub const fn events(&self) -> &Receiver<KeeperEvent> {
        &self.events
    }

    /// Its process, for people to look at.
    pub const fn pid(&self) -> i32 {
        self.pid
    }

    /// Where output is read.
    pub const fn spool(&self) -> &Spool {
        &self.spool
    }

    /// Leaves. The keeper goes too, once its last command has ended; what is not forgotten is in
    /// the spool for the next engine. Returns when the keeper has heard everything.
    pub fn goodbye(self) {
        // If it has gone there is nobody to take leave of.
        self.send(&Request::Goodbye);
        while self
            .events
            .recv()
            .is_ok_and(|event| event != KeeperEvent::Gone)
        {}
    }

    fn send(&self, request: &Request) {
        self.tell(&framed(request).unwrap_or_default());
    }

    fn tell(&self, framed: &[u8]) {
        failpoint::pass("told-before");
        // What cannot be told is heard as [`Event::Gone`].
        drop((&self.stream).write_all(framed));
        failpoint::pass("told-after");
    }
}

/// The next thing a keeper says that is news.
fn next_event(reading: &mut impl Read) -> KeeperEvent {
    loop {
        return match next_reply(reading) {
            Ok(Reply::Running(running)) => KeeperEvent::Began(running),
            Ok(Reply::Exited(exited)) => KeeperEvent::Exited(exited),
            Ok(Reply::Refused { id, why }) => KeeperEvent::Refused { id, why },
            Ok(Reply::Welcome { .. } | Reply::Vanished(_) | Reply::Ready) => continue,
            Err(_) => KeeperEvent::Gone,
        };
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // Ends the reader's wait; an error means that it has ended.
        drop(self.stream.shutdown(Shutdown::Both));
    }
}
