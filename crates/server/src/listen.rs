//! The one listener: accepts connections, bounded in number and time, and shuts down gracefully.
//!
//! The listener knows nothing about requests; its routes do. Clients that are slow, dead or too many must
//! not keep other clients from being served.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Bytes, HttpBody};
use axum::http::Request;
use axum::middleware::from_fn;
use axum::response::Response;
use axum::routing::future::RouteFuture;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tower::Service;

use crate::connection::{ConnectionSettings, serve_connection};
use crate::limits::{ListenLimits, leave_reserve};
use crate::room::{ConnectionPermit, Room, WaitingConnections};

/// How long nothing is accepted after an error, most likely for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// Signals that the listener is about to end.
#[derive(Clone, Debug)]
pub(crate) struct ListenerEnd(watch::Receiver<()>);

impl ListenerEnd {
    /// It comes when the sender is dropped.
    pub(crate) fn channel() -> (watch::Sender<()>, Self) {
        let (end, asked) = watch::channel(());
        (end, Self(asked))
    }

    pub(crate) async fn reached(&mut self) {
        // Nothing is ever sent: it waits until the sender is dropped.
        while self.0.changed().await.is_ok() {}
    }
}

/// A listener. It ends when this is dropped.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    runtime: Option<Runtime>,
    end: Option<watch::Sender<()>>,
    served: Option<JoinHandle<()>>,
    grace: Duration,
}

impl Listener {
    pub(crate) fn start(
        listener: TcpListener,
        limits: ListenLimits,
        routes: impl FnOnce(ListenerEnd) -> Router,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("listener")
            .enable_all()
            .build()?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let (end, ending) = ListenerEnd::channel();
        // Around everything, so that no refusal keeps its place in the reserve.
        let routes = routes(ending.clone()).layer(from_fn(leave_reserve));
        let served = runtime.spawn(accept(listener, routes, limits, ending));
        Ok(Self {
            address,
            runtime: Some(runtime),
            end: Some(end),
            served: Some(served),
            grace: limits.grace,
        })
    }

    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Spawns a task that ends with the listener.
    pub(crate) fn spawn<W>(&self, work: impl FnOnce(ListenerEnd) -> W)
    where
        W: Future<Output = ()> + Send + 'static,
    {
        if let (Some(runtime), Some(end)) = (&self.runtime, &self.end) {
            drop(runtime.spawn(work(ListenerEnd(end.subscribe()))));
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Open requests are answered first: a client could not repeat them.
        drop(self.end.take());
        let (Some(runtime), Some(served)) = (self.runtime.take(), self.served.take()) else {
            return;
        };
        let grace = self.grace.saturating_add(PAUSE);
        let done = async { tokio::time::timeout(grace, served).await };
        drop(runtime.block_on(done));
        runtime.shutdown_background();
    }
}

async fn accept(
    listener: tokio::net::TcpListener,
    routes: Router,
    limits: ListenLimits,
    mut ending: ListenerEnd,
) {
    let room = Room::of(&limits);
    let (open, mut closed) = mpsc::channel(1);
    let mut waiting = WaitingConnections::default();
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = ending.reached() => break,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let permit = tokio::select! {
            permit = room.enter(&mut waiting, open.clone()) => permit,
            () = ending.reached() => break,
        };
        let Some(permit) = permit else { break };
        let reserve = permit.in_reserve();
        let routes = PermittedRoutes { routes: routes.clone(), permit };
        let task = connections.spawn(serve(stream, routes, limits, ending.clone()));
        if let Some(reserve) = reserve {
            waiting.add(task, reserve);
        }
    }
    drop((listener, open));
    let all = async {
        while connections.join_next().await.is_some() {}
        // WebSockets last longer than their requests. Nothing is ever sent: this waits for the last sender.
        let _ = closed.recv().await;
    };
    drop(tokio::time::timeout(limits.grace, all).await);
}

async fn serve(stream: TcpStream, routes: PermittedRoutes, limits: ListenLimits, mut ending: ListenerEnd) {
    // Answers are small and whole; nothing is gained by waiting for more to send.
    drop(stream.set_nodelay(true));
    let settings = ConnectionSettings { head: limits.header, stall: limits.event, half_close: false };
    serve_connection(stream, routes, settings, async move { ending.reached().await }).await;
}

#[derive(Clone)]
pub(crate) struct PermittedRoutes {
    pub(crate) routes: Router,
    pub(crate) permit: ConnectionPermit,
}

impl<B> Service<Request<B>> for PermittedRoutes
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<axum::BoxError>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = RouteFuture<Infallible>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Service::<Request<B>>::poll_ready(&mut self.routes, context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        self.permit.begin();
        let _ = request.extensions_mut().insert(self.permit.clone());
        self.routes.call(request)
    }
}

#[cfg(test)]
mod tests;
