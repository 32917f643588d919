//! The one listener: accepts connections, bounded in number and time, and shuts down gracefully.
//!
//! The listener knows nothing about requests; its routes do. Clients that are slow, dead or too many must
//! not keep other clients from being served.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Bytes, HttpBody};
use axum::http::Request;
use axum::response::Response;
use axum::routing::future::RouteFuture;
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use tower::Service;

use crate::limits::{ListenLimits, bounded};

/// How long nothing is accepted after an error, most likely for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// The permit of a connection. A WebSocket keeps it after its request has ended.
pub(crate) type ConnectionPermit = Arc<OwnedSemaphorePermit>;

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
        let routes = bounded(routes(ending.clone()), limits);
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
    let permits = Arc::new(Semaphore::new(limits.connections));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        // Without a permit nothing is accepted: clients wait in the queue of the system.
        let permit = tokio::select! {
            permit = Arc::clone(&permits).acquire_owned() => permit,
            () = ending.reached() => break,
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = ending.reached() => break,
        };
        match (accepted, permit) {
            (Ok((stream, _)), Ok(permit)) => {
                let routes = PermittedRoutes { routes: routes.clone(), permit: Arc::new(permit) };
                let header = limits.header;
                let _ = connections.spawn(serve(stream, routes, header, ending.clone()));
            }
            _ => tokio::time::sleep(PAUSE).await,
        }
    }
    drop(listener);
    let all = async {
        while connections.join_next().await.is_some() {}
        // WebSockets keep their permits after their requests have ended.
        let many = u32::try_from(limits.connections).unwrap_or(u32::MAX);
        drop(permits.acquire_many(many).await);
    };
    drop(tokio::time::timeout(limits.grace, all).await);
}

async fn serve(stream: TcpStream, routes: PermittedRoutes, header: Duration, mut ending: ListenerEnd) {
    // Answers are small and whole; nothing is gained by waiting for more to send.
    drop(stream.set_nodelay(true));
    let mut http = Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(header);
    let service = TowerToHyperService::new(routes);
    let connection = http.serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection.with_upgrades());
    tokio::select! {
        // An error means that the connection is gone, so no answer can be sent.
        _ = connection.as_mut() => return,
        () = ending.reached() => {}
    }
    connection.as_mut().graceful_shutdown();
    drop(connection.await);
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
        let _ = request.extensions_mut().insert(Arc::clone(&self.permit));
        self.routes.call(request)
    }
}

#[cfg(test)]
mod tests;
