//! The server: everything at one address.

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

/// Somebody listens and answers, for as long as this is there.
#[derive(Debug)]
pub struct Server(Listening);

/// Everything that is answered, for those who may ask.
pub(crate) fn all(served: Served, access: Access, limits: ListenLimits, ending: Ending) -> Router {
    let host = Arc::clone(&served.host);
    let deliver = Arc::new(move |flow: &str, arrived: Arrived| host.deliver(flow, &arrived));
    let api = Api::of(served, ending, limits.event);
    guarded(routes(api, deliver), access)
}

#[derive(Clone, Debug, Default)]
pub struct Manner {
    pub access: Access,
    /// What is taken on at once.
    pub limits: ListenLimits,
    /// How steps are looked after.
    pub health: HealthChecks,
}

impl Server {
    /// Answers on a listener. Whether that may be reached is asked of [`Access::may_listen`] before.
    pub fn start(listener: TcpListener, manner: Manner, served: Served) -> io::Result<Self> {
        let Manner {
            access,
            limits,
            health,
        } = manner;
        let shown = served.clone();
        let listening = Listening::start(listener, limits, |ending| {
            all(shown, access, limits, ending)
        })?;
        listening.beside(|ending| look_after(served, health, ending));
        Ok(Self(listening))
    }

    pub const fn address(&self) -> SocketAddr {
        self.0.address()
    }
}
