//! A server on a store in memory, for tests: flows are told what to do by the tests themselves.

use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value};
use undaunted_runner::catalog::Book;
use undaunted_store::{MemoryStore, Store};

use crate::act::{Definitions, Flows, PlanError, StartError, StartFlow, Started};
use crate::api::Served;
use crate::flow_plan::PlanView;
use crate::health::HealthChecks;
use crate::metrics::Metrics;
use crate::news::News;
use crate::server::{Manner, Server};
use crate::spoken::{request, say};
use crate::webhooks::{Delivered, Delivery};

pub(crate) struct Stage {
    pub(crate) server: Server,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) book: Book,
    pub(crate) news: News,
    pub(crate) flows: Arc<Pretended>,
}

/// Answers as it is asked to, and remembers what was asked.
#[derive(Default)]
pub(crate) struct Pretended {
    pub(crate) started: Mutex<Vec<StartFlow>>,
    pub(crate) sick: Mutex<bool>,
    pub(crate) asked: AtomicUsize,
}

impl Flows for Pretended {
    fn check_step(&self, definition: &Value) -> Result<String, String> {
        let id = definition["id"].as_str().ok_or("`id` is missing")?;
        match definition["type"].as_str() {
            Some("sync") => Ok(id.to_owned()),
            other => Err(format!("`type` is {other:?}")),
        }
    }

    fn plan(
        &self,
        definitions: &Definitions,
        goals: &[String],
        init: &Map<String, Value>,
    ) -> Result<PlanView, PlanError> {
        let mut plan = PlanView {
            goals: goals.to_vec(),
            ..PlanView::default()
        };
        for goal in goals {
            let Some(step) = definitions.get(goal) else {
                return Err(PlanError::UnknownStep(goal.clone()));
            };
            let step = serde_json::from_str(step).unwrap();
            let _ = plan.steps.insert(goal.clone(), step);
        }
        plan.required = init.keys().cloned().collect();
        Ok(plan)
    }

    fn start(&self, flow: StartFlow) -> Result<Started, StartError> {
        let answer = match flow.id.as_str() {
            "unknown" => Err(StartError::UnknownStep("x".to_owned())),
            "incomplete" => Err(StartError::MissingInputs(vec!["a".to_owned()])),
            "taken" => Err(StartError::Conflict("it is taken".to_owned())),
            "broken" => Err(StartError::Store("the disk is full".to_owned())),
            "again" => Ok(Started::AlreadyThere),
            _ => Ok(Started::Begun),
        };
        self.started.lock().unwrap().push(flow);
        answer
    }

    fn deliver(&self, delivery: Delivery) -> Delivered {
        match delivery.token.as_str() {
            "known" => Delivered::Taken,
            "busy" => Delivered::Unheard,
            _ => Delivered::Unknown,
        }
    }

    fn ask_health(&self, address: &str, _: Duration) -> Result<(), String> {
        let _ = self.asked.fetch_add(1, Ordering::SeqCst);
        if *self.sick.lock().unwrap() {
            Err(format!("{address} does not answer"))
        } else {
            Ok(())
        }
    }
}

impl Stage {
    pub(crate) fn set() -> Self {
        Self::with(Manner::default())
    }

    pub(crate) fn with(manner: Manner) -> Self {
        let store = Arc::new(MemoryStore::new());
        let shared: Arc<dyn Store> = Arc::clone(&store) as _;
        let book = Book::open(Arc::clone(&shared)).unwrap();
        let flows = Arc::new(Pretended::default());
        let news = News::quiet();
        let served = Served {
            store: shared,
            book: book.clone(),
            flows: Arc::clone(&flows) as _,
            metrics: Arc::new(Metrics::default()),
            news: news.clone(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self {
            server: Server::start(listener, manner, served).unwrap(),
            store,
            book,
            news,
            flows,
        }
    }

    /// Looks after steps as often as it can.
    pub(crate) fn attentive() -> Self {
        Self::with(Manner {
            health: HealthChecks {
                every: Duration::from_millis(1),
                ..HealthChecks::default()
            },
            ..Manner::default()
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
