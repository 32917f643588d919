//! The whole API on one address.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use axum::Router;
use undaunted_runner::request::Arrived;

use crate::api::{Api, Served};
use crate::guard::{Access, guarded};
use crate::health::{HealthChecks, look_after};
use crate::limits::ListenLimits;
use crate::listen::{Ending, Listening};
use crate::routes::routes;

/// Serves until it is dropped.
#[derive(Debug)]
pub struct Server(Listening);

pub(crate) fn all(served: Served, access: Access, limits: ListenLimits, ending: Ending) -> Router {
    let host = Arc::clone(&served.host);
    let deliver = Arc::new(move |flow: &str, arrived: Arrived| host.deliver(flow, &arrived));
    let api = Api::of(served, ending, limits.event);
    guarded(routes(api, deliver), access)
}

#[derive(Clone, Debug, Default)]
pub struct Manner {
    pub access: Access,
    pub limits: ListenLimits,
    pub health: HealthChecks,
}

impl Server {
    /// Serves on a listener. Call [`Access::may_listen`] with its address first.
    pub fn start(listener: TcpListener, manner: Manner, served: Served) -> io::Result<Self> {
        let Manner { access, limits, health } = manner;
        let shown = served.clone();
        let listening = Listening::start(listener, limits, |ending| all(shown, access, limits, ending))?;
        listening.beside(|ending| look_after(served, health, ending));
        Ok(Self(listening))
    }

    pub const fn address(&self) -> SocketAddr {
        self.0.address()
    }
}
