//! The whole API on one address.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use axum::Router;
use undaunted_runner::request::ArrivedResult;

use crate::api::{Api, Served};
use crate::guard::{Access, guarded};
use crate::health::{HealthChecks, check_steps};
use crate::limits::ListenLimits;
use crate::listen::{Listener, ListenerEnd};
use crate::routes::routes;

/// Serves until it is dropped.
#[derive(Debug)]
pub struct HttpServer(Listener);

pub(crate) fn all(served: Served, access: Access, limits: ListenLimits, ending: ListenerEnd) -> Router {
    let host = Arc::clone(&served.host);
    let deliver = Arc::new(move |flow: &str, arrived: ArrivedResult| host.deliver(flow, &arrived));
    let api = Api::of(served, ending, limits.event);
    guarded(routes(api, deliver), access)
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
        let shown = served.clone();
        let listening = Listener::start(listener, limits, |ending| all(shown, access, limits, ending))?;
        listening.spawn(|ending| check_steps(served, health, ending));
        Ok(Self(listening))
    }

    pub const fn address(&self) -> SocketAddr {
        self.0.address()
    }
}
