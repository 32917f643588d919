//! The HTTP API.
//!
//! [`HttpServer`] lets clients register steps, start flows and follow them, in the shapes that clients of
//! Argyll know. It reads the store and shows what is there; the host of the flows runs them. A step may
//! answer at once that it has accepted the work, and send the result later, to a URL it got with the call:
//! [`Webhooks`] is where such results arrive if nothing else is served.

mod answer;
mod api;
mod body;
mod catalog_events;
mod connection;
mod everything;
mod fields;
#[cfg(test)]
mod fixture;
mod flow_state;
mod flows;
mod follow;
mod guard;
mod health;
mod limits;
mod listen;
mod log;
mod metrics;
mod offline;
mod origins;
mod query;
mod room;
mod routes;
mod server;
mod socket;
mod steps;
mod store_watch;
mod subscription;
mod watch;
mod watched_jobs;
mod webhooks;

pub use api::Served;
pub use catalog_events::catalog_event;
pub use guard::Access;
pub use health::HealthChecks;
pub use limits::ListenLimits;
pub use listen::Listener;
pub use log::LogWriter;
pub use metrics::Metrics;
#[doc(hidden)]
pub use offline::{Offline, OfflineServer};
pub use origins::AllowedOrigins;
pub use server::{HttpServer, ServerSettings};
pub use store_watch::StoreWatch;
pub use watch::{ChangeSignal, Watch};
pub use webhooks::{ResultReceiver, Webhooks};
