//! A server without an address: bytes in, bytes out, and no socket.
//!
//! For whoever sends it millions of connections (fuzzing): what is sent goes through everything a real
//! connection goes through, from the parser of HTTP to the routes. Steps are not looked after.

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
use crate::listen::{Ending, Placed};
use crate::server::{Manner, all};

/// How much is under way in one direction.
const UNDER_WAY: usize = 64 << 10;

/// Where servers without an address run.
#[derive(Debug)]
pub struct Offline(Runtime);

/// A server without an address.
#[derive(Debug)]
pub struct OfflineServer<'o> {
    runtime: &'o Runtime,
    routes: Router,
    limits: ListenLimits,
    places: Arc<Semaphore>,
    /// What goes on after its request ends when this goes.
    _end: watch::Sender<()>,
}

impl Offline {
    /// Makes room for servers.
    pub fn begin() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("offline")
            .enable_all()
            .build()?;
        Ok(Self(runtime))
    }

    pub fn serve(&self, manner: Manner, served: Served) -> OfflineServer<'_> {
        let Manner { access, limits, .. } = manner;
        let (end, ending) = Ending::ahead();
        OfflineServer {
            runtime: &self.0,
            routes: bounded(all(served, access, limits, ending), limits),
            limits,
            places: Arc::new(Semaphore::new(limits.connections)),
            _end: end,
        }
    }
}

impl OfflineServer<'_> {
    /// What is answered on a connection over which this is sent, and then nothing more. Nothing if that
    /// takes longer than somebody has patience, or there is no place left.
    pub fn answer(&self, sent: &[u8], patience: Duration) -> Option<Vec<u8>> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let routes = Placed {
            routes: self.routes.clone(),
            place: Arc::new(place),
        };
        let (near, far) = duplex(UNDER_WAY);
        let mut http = Builder::new();
        // Whoever has said everything still wants to hear the answer.
        http.timer(TokioTimer::new())
            .header_read_timeout(self.limits.header)
            .half_close(true);
        let service = TowerToHyperService::new(routes);
        let connection = http.serve_connection(TokioIo::new(far), service);
        let connection = connection.with_upgrades();
        let (mut reading, mut writing) = split(near);
        let talk = async {
            let said = async {
                // Whoever is refused early is not read to the end.
                drop(writing.write_all(sent).await);
                drop(writing.shutdown().await);
            };
            let mut answer = Vec::new();
            let heard = async {
                // What arrived before it broke off is the answer.
                drop(reading.read_to_end(&mut answer).await);
            };
            let (_, (), ()) = tokio::join!(connection, said, heard);
            answer
        };
        let talk = async { tokio::time::timeout(patience, talk).await };
        self.runtime.block_on(talk).ok()
    }
}
