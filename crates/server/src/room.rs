//! The room for connections, when there are more clients than a server can hold.
//!
//! A client is not known before its first request has arrived. So some room is kept in which requests are
//! read: a health check or a caller with the token is answered there, any other request gets 503. Callers
//! with the token then move to room of their own, so that clients without it cannot take their place.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use crate::limits::ListenLimits;

/// How long a client in the reserve may take to send its request, if others wait.
const MIN_WAIT: Duration = Duration::from_millis(100);

/// The part of the room that a connection is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoomPart {
    Ordinary,
    /// Only health checks and callers with the token are served here.
    Reserve,
    /// For callers with the token.
    Trusted,
}

#[derive(Clone, Debug)]
pub(crate) struct Room {
    ordinary: Arc<Semaphore>,
    reserve: Arc<Semaphore>,
    trusted: Arc<Semaphore>,
    sockets: Arc<Semaphore>,
}

/// The permit of a connection. A WebSocket keeps it after its request has ended.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionPermit(Arc<HeldRoom>);

#[derive(Debug)]
struct HeldRoom {
    room: Room,
    held: Mutex<(RoomPart, OwnedSemaphorePermit)>,
    /// A request has arrived.
    has_begun: AtomicBool,
    /// Dropped with the connection, so that the listener can wait for all of them.
    _open: mpsc::Sender<()>,
}

impl Room {
    pub(crate) fn of(limits: &ListenLimits) -> Self {
        let permits = |many: usize| Arc::new(Semaphore::new(many.min(Semaphore::MAX_PERMITS)));
        Self {
            ordinary: permits(limits.connections),
            reserve: permits(limits.reserve.max(1)),
            trusted: permits(limits.connections / 2),
            sockets: permits(limits.sockets),
        }
    }

    /// Waits for room for an accepted connection. If clients that have not sent a request yet fill the reserve,
    /// the one that was accepted first is disconnected.
    pub(crate) async fn enter(
        &self,
        waiting: &mut WaitingConnections,
        open: mpsc::Sender<()>,
    ) -> Option<ConnectionPermit> {
        let held = match Arc::clone(&self.ordinary).try_acquire_owned() {
            Ok(permit) => (RoomPart::Ordinary, permit),
            Err(_) => (RoomPart::Reserve, self.reserve(waiting).await?),
        };
        Some(ConnectionPermit(Arc::new(HeldRoom {
            room: self.clone(),
            held: Mutex::new(held),
            has_begun: AtomicBool::new(false),
            _open: open,
        })))
    }

    async fn reserve(&self, waiting: &mut WaitingConnections) -> Option<OwnedSemaphorePermit> {
        let mut permit = pin!(Arc::clone(&self.reserve).acquire_owned());
        loop {
            let oldest = waiting.oldest();
            tokio::select! {
                biased;
                permit = &mut permit => return permit.ok(),
                () = sleep_until(oldest.unwrap_or_else(Instant::now)), if oldest.is_some() => {
                    waiting.disconnect_oldest();
                }
            }
        }
    }
}

impl ConnectionPermit {
    /// A request has arrived.
    pub(crate) fn begin(&self) {
        self.0.has_begun.store(true, Ordering::Relaxed);
    }

    /// For [`WaitingConnections`], if the connection is in the reserve.
    pub(crate) fn in_reserve(&self) -> Option<WaitingConnection> {
        (self.part() == RoomPart::Reserve)
            .then(|| WaitingConnection { held: Arc::downgrade(&self.0), since: Instant::now() })
    }

    pub(crate) fn part(&self) -> RoomPart {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// The client has shown the token: it moves to the room for such clients, if that is not full.
    pub(crate) fn trust(&self) -> RoomPart {
        let mut held = self.0.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.0 != RoomPart::Trusted
            && let Ok(permit) = Arc::clone(&self.0.room.trusted).try_acquire_owned()
        {
            *held = (RoomPart::Trusted, permit);
        }
        held.0
    }

    /// The permit of a WebSocket, which may stay open for as long as its client likes.
    pub(crate) fn open_socket(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.room.sockets).try_acquire_owned().ok()
    }
}

/// A connection in the reserve. It does not keep the permit.
#[derive(Debug)]
pub(crate) struct WaitingConnection {
    held: Weak<HeldRoom>,
    since: Instant,
}

impl WaitingConnection {
    fn waits(&self) -> bool {
        self.held.upgrade().is_some_and(|held| {
            let part = held.held.lock().unwrap_or_else(PoisonError::into_inner).0;
            part == RoomPart::Reserve && !held.has_begun.load(Ordering::Relaxed)
        })
    }
}

/// Connections in the reserve, in the order in which they were accepted.
#[derive(Debug, Default)]
pub(crate) struct WaitingConnections(VecDeque<(AbortHandle, WaitingConnection)>);

impl WaitingConnections {
    pub(crate) fn add(&mut self, task: AbortHandle, connection: WaitingConnection) {
        self.0.retain(|(_, known)| known.waits());
        self.0.push_back((task, connection));
    }

    /// When the oldest connection may be disconnected.
    fn oldest(&mut self) -> Option<Instant> {
        self.0.retain(|(_, known)| known.waits());
        self.0.front()?.1.since.checked_add(MIN_WAIT)
    }

    fn disconnect_oldest(&mut self) {
        while let Some((task, connection)) = self.0.pop_front() {
            if connection.waits() {
                task.abort();
                return;
            }
        }
    }
}
