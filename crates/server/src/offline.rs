//! A server without an address: bytes in, bytes out, and no socket.
//!
//! For fuzzing with millions of connections: the bytes pass through everything a real connection does, from
//! the HTTP parser to the routes. The health of steps is not checked.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex, split};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};

use crate::api::Served;
use crate::limits::{ListenLimits, bounded};
use crate::listen::{ListenerEnd, PermittedRoutes};
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
    permits: Arc<Semaphore>,
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
            routes: bounded(guarded_routes(served, access, limits, ending), limits),
            limits,
            permits: Arc::new(Semaphore::new(limits.connections)),
            _end: end,
        }
    }
}

impl OfflineServer<'_> {
    /// The answer to a connection that sends these bytes and no more. `None` if it takes longer than
    /// `patience`, or there are too many connections.
    pub fn answer(&self, sent: &[u8], patience: Duration) -> Option<Vec<u8>> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().ok()?;
        let routes = PermittedRoutes { routes: self.routes.clone(), permit: Arc::new(permit) };
        let (near, far) = duplex(BUFFER_BYTES);
        let mut http = Builder::new();
        // `half_close`: the client has sent everything and still wants the answer.
        http.timer(TokioTimer::new()).header_read_timeout(self.limits.header).half_close(true);
        let service = TowerToHyperService::new(routes);
        let connection = http.serve_connection(TokioIo::new(far), service);
        let connection = connection.with_upgrades();
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
            let (_, (), ()) = tokio::join!(connection, writes, reads);
            answer
        };
        let talk = async { tokio::time::timeout(patience, talk).await };
        self.runtime.block_on(talk).ok()
    }
}
