//! A server without an address: bytes in, bytes out, and no socket.
//!
//! For fuzzing with millions of connections: the bytes pass through everything a real connection does, from
//! the HTTP parser to the routes. The health of steps is not checked.

use std::io;
use std::time::Duration;

use axum::Router;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex, split};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};

use crate::api::Served;
use crate::connection::{ConnectionSettings, serve_connection};
use crate::limits::ListenLimits;
use crate::listen::{ListenerEnd, PermittedRoutes};
use crate::room::{Room, WaitingConnections};
use crate::server::{ServerSettings, guarded_routes};

/// Bytes buffered in one direction.
const BUFFER_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub struct Offline(Runtime);

#[derive(Debug)]
pub struct OfflineServer<'o> {
    runtime: &'o Runtime,
    routes: Router,
    limits: ListenLimits,
    room: Room,
    /// Open web sockets end when this is dropped.
    _end: watch::Sender<()>,
}

impl Offline {
    pub fn begin() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("offline")
            .enable_all()
            .build()?;
        Ok(Self(runtime))
    }

    pub fn serve(&self, settings: ServerSettings, served: Served) -> OfflineServer<'_> {
        let ServerSettings { access, limits, .. } = settings;
        let (end, ending) = ListenerEnd::channel();
        OfflineServer {
            runtime: &self.0,
            routes: guarded_routes(served, access, limits, ending),
            limits,
            room: Room::of(&limits),
            _end: end,
        }
    }
}

impl OfflineServer<'_> {
    /// The answer to a connection that sends these bytes and no more. `None` if it takes longer than
    /// `patience`.
    pub fn answer(&self, sent: &[u8], patience: Duration) -> Option<Vec<u8>> {
        let mut others = WaitingConnections::default();
        let permit = self.runtime.block_on(self.room.enter(&mut others, mpsc::channel(1).0))?;
        let routes = PermittedRoutes { routes: self.routes.clone(), permit };
        let (near, far) = duplex(BUFFER_BYTES);
        let settings =
            ConnectionSettings { head: self.limits.header, stall: self.limits.event, half_close: true };
        let connection = serve_connection(far, routes, settings, std::future::pending());
        let (mut reading, mut writing) = split(near);
        let talk = async {
            let writes = async {
                // A request that is refused early is not read to its end.
                drop(writing.write_all(sent).await);
                drop(writing.shutdown().await);
            };
            let mut answer = Vec::new();
            let reads = async {
                // The bytes before an error are the answer.
                drop(reading.read_to_end(&mut answer).await);
            };
            let ((), (), ()) = tokio::join!(connection, writes, reads);
            answer
        };
        let talk = async { tokio::time::timeout(patience, talk).await };
        self.runtime.block_on(talk).ok()
    }
}
