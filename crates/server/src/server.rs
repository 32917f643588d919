//! [`HttpServer`]: all routes on one address, with access control and limits. `routes.rs` has the routes.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn;

use crate::api::{Api, Served};
use crate::guard::{Access, guarded};
use crate::health::{HealthChecks, check_steps};
use crate::limits::{ListenLimits, RequestLimits, admitted};
use crate::listen::{Listener, ListenerEnd};
use crate::routes::routes;

/// Serves until it is dropped.
#[derive(Debug)]
pub struct HttpServer(Listener);

pub(crate) fn guarded_routes(
    served: Served,
    access: Access,
    limits: ListenLimits,
    ending: ListenerEnd,
) -> Router {
    let results = Arc::clone(&served.host);
    let api = Api::of(served, ending, limits.event);
    let routes = routes(api, results, RequestLimits::of(&limits));
    guarded(routes.layer(from_fn(admitted)), access)
}

#[derive(Clone, Debug, Default)]
pub struct ServerSettings {
    pub access: Access,
    pub limits: ListenLimits,
    pub health: HealthChecks,
}

impl HttpServer {
    /// Serves on a listener. Call [`Access::may_listen`] with its address first.
    pub fn start(listener: TcpListener, settings: ServerSettings, served: Served) -> io::Result<Self> {
        let ServerSettings { access, limits, health } = settings;
        let for_routes = served.clone();
        let listening =
            Listener::start(listener, limits, |ending| guarded_routes(for_routes, access, limits, ending))?;
        listening.spawn(|ending| check_steps(served, health, ending));
        Ok(Self(listening))
    }

    pub const fn address(&self) -> SocketAddr {
        self.0.address()
    }
}
