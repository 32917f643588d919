//! A server on a store in memory, for tests.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use undaunted_engine::workflow::Operator;
use undaunted_runner::catalog::CatalogHandle;
use undaunted_runner::drive::{NoJobObserver, Services};
use undaunted_runner::endpoints::Endpoints;
use undaunted_runner::flows::{FlowHost, HostSettings};
use undaunted_runner::folder::LocalFolder;
use undaunted_runner::machine::LocalMachine;
use undaunted_store::{MemoryStore, Store};

use crate::api::Served;
use crate::health::HealthChecks;
use crate::metrics::Metrics;
use crate::news::ChangeSignal;
use crate::server::{HttpServer, ServerSettings};
use crate::spoken::{request, say};

pub(crate) struct Stage {
    pub(crate) server: HttpServer,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) book: CatalogHandle,
    pub(crate) news: ChangeSignal,
}

impl Stage {
    pub(crate) fn set() -> Self {
        Self::with(ServerSettings::default())
    }

    pub(crate) fn with(manner: ServerSettings) -> Self {
        let store = Arc::new(MemoryStore::new());
        let shared: Arc<dyn Store> = Arc::clone(&store) as _;
        let book = CatalogHandle::open(Arc::clone(&shared)).unwrap();
        let news = ChangeSignal::quiet();
        let world = Services {
            store: shared,
            local: LocalFolder::new(""),
            machine: Arc::new(LocalMachine::default()),
            grace: Duration::ZERO,
            check_interval: Duration::from_secs(5),
            catalog: None,
            endpoints: Endpoints::default(),
            around: Vec::new(),
        };
        let settings = HostSettings {
            operator: Operator::default(),
            webhooks: "http://localhost".to_owned(),
            release: String::new(),
            directory: "/".to_owned(),
            watch: Box::new(|_| Box::new(NoJobObserver)),
            left: Box::new(|_, _| {}),
        };
        let served = Served {
            host: Arc::new(FlowHost::begin(world, book.clone(), settings)),
            metrics: Arc::new(Metrics::default()),
            news: news.clone(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self { server: HttpServer::start(listener, manner, served).unwrap(), store, book, news }
    }

    /// Looks after steps as often as it can.
    pub(crate) fn attentive() -> Self {
        Self::with(ServerSettings {
            health: HealthChecks { every: Duration::from_millis(1), ..HealthChecks::default() },
            ..ServerSettings::default()
        })
    }

    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let headers = ["Host: localhost", "Content-Type: application/json"];
        let text = request(method, path, &headers, body);
        let (status, _, body) = say(self.server.address(), &text);
        (status, body)
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        self.ask("GET", path, "")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.ask("POST", path, &body.to_string())
    }
}
