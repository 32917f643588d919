//! A server and flows on a store in memory, and raw HTTP over a socket, for tests.

use crate::answer::json_of;
use crate::api::Served;
use crate::flow_state::FollowedFlow;
use crate::health::HealthChecks;
use crate::metrics::Metrics;
use crate::server::{HttpServer, ServerSettings};
use crate::watch::ChangeSignal;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use undaunted_engine::breaker::{AdmissionControl, BreakerAnswer};
use undaunted_engine::decide::react;
use undaunted_engine::effect::ready;
use undaunted_engine::event::{Event, JobEvent, Record};
use undaunted_engine::id::{StartId, StepId};
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::{Job, Plans};
use undaunted_engine::plan::Plan;
use undaunted_engine::submission::{SubmissionContext, submission};
use undaunted_engine::view::{Projection, flow_event};
use undaunted_engine::workflow::{Operator, Source, check};
use undaunted_policy::{FailureCause, Timestamp};
use undaunted_runner::catalog::CatalogHandle;
use undaunted_runner::drive::{NoJobObserver, Services};
use undaunted_runner::endpoints::Endpoints;
use undaunted_runner::flows::{FlowHost, HostSettings};
use undaunted_runner::folder::LocalFolder;
use undaunted_runner::journal::aggregate;
use undaunted_runner::machine::LocalMachine;
use undaunted_store::{Append, Claim, MemoryStore, Store, Version};

pub(crate) struct TestServer {
    pub(crate) server: HttpServer,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) catalog: CatalogHandle,
    pub(crate) news: ChangeSignal,
    pub(crate) host: Arc<FlowHost>,
}

impl TestServer {
    pub(crate) fn start() -> Self {
        Self::with(ServerSettings::default())
    }

    pub(crate) fn with(settings: ServerSettings) -> Self {
        let store = Arc::new(MemoryStore::new());
        let shared: Arc<dyn Store> = Arc::clone(&store) as _;
        let catalog = CatalogHandle::open(Arc::clone(&shared)).unwrap();
        let news = ChangeSignal::default();
        let world = Services {
            store: shared,
            local: LocalFolder::new(""),
            machine: Arc::new(LocalMachine::default()),
            grace: Duration::ZERO,
            check_interval: Duration::from_secs(5),
            catalog: None,
            endpoints: Endpoints::default(),
            env: Vec::new(),
        };
        let host = HostSettings {
            operator: Operator::default(),
            webhooks: "http://localhost".to_owned(),
            release: String::new(),
            directory: "/".to_owned(),
            watch: Box::new(|_| Box::new(NoJobObserver)),
            left: Box::new(|_, _| {}),
        };
        let host = Arc::new(FlowHost::begin(world, catalog.clone(), host));
        let served = Served {
            host: Arc::clone(&host),
            metrics: Arc::new(Metrics::default()),
            changes: news.clone(),
            others: None,
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self { server: HttpServer::start(listener, settings, served).unwrap(), store, catalog, news, host }
    }

    /// Looks after steps as often as it can.
    pub(crate) fn with_frequent_health_checks() -> Self {
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

/// When every job of these tests is submitted.
pub(crate) const T0: Timestamp = Timestamp::from_millis(1_700_000_000_000);

pub(crate) struct TestFlow {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) job: Job,
    pub(crate) version: Version,
    pub(crate) now: Timestamp,
    /// Every record so far.
    pub(crate) records: Vec<Record>,
    claim: Claim,
}

/// The text of a flow. A step is its id, what it takes and gives, and what else it says.
pub(crate) fn text(goals: &str, init: &str, steps: &[(&str, &str, &str)]) -> String {
    let steps = steps.iter().map(|(id, attributes, more)| {
        format!(
            "  - {{id: {id}, name: {id}, type: sync, http: {{endpoint: 'http://s/{id}'}}, attributes: {{{attributes}}}{more}}}\n"
        )
    });
    let steps: String = steps.collect();
    format!("mode: flow\ngoals: [{goals}]\ninit: {{{init}}}\nsteps:\n{steps}")
}

impl TestFlow {
    /// A job that was submitted and has begun.
    pub(crate) fn of(id: &str, text: &str) -> Self {
        Self::on(Arc::new(MemoryStore::new()), id, text)
    }

    pub(crate) fn on(store: Arc<MemoryStore>, id: &str, text: &str) -> Self {
        let operator = Operator::default();
        let checked = check(&Source::new("f.yaml", text), &operator);
        let workflow = checked.workflow.unwrap_or_else(|| panic!("{:?}", checked.diagnostics));
        let around = SubmissionContext {
            job: id.to_owned(),
            file: "f.yaml".to_owned(),
            working_dir: "/".to_owned(),
            seed: 7,
            operator: &operator,
            variable: &|_| None,
            release: "test".to_owned(),
            flow: None,
            token_key: None,
        };
        let submitted = submission(Plan::new(workflow), text, around).unwrap();
        let first = Record { at: T0, event: Event::Job(JobEvent::Submitted(Box::new(submitted))) };
        let claim = store.claim(&aggregate(id).unwrap()).unwrap();
        let mut test_flow = Self {
            job: Job::begin(&first).unwrap(),
            store,
            version: Version::default(),
            now: T0,
            records: Vec::new(),
            claim,
        };
        test_flow.write(vec![first]);
        test_flow.feed(&Input::Woke);
        test_flow
    }

    fn write(&mut self, records: Vec<Record>) {
        let bytes = records.iter().map(Record::encode).collect();
        let (aggregate, epoch) = (self.claim.aggregate.clone(), self.claim.epoch);
        let append = Append::new(aggregate, self.version, epoch, bytes);
        self.version = append.reaches(self.version);
        self.store.append(vec![append]).unwrap();
        self.records.extend(records);
    }

    pub(crate) fn feed(&mut self, input: &Input) {
        let records = react(&mut self.job, input, self.now).records;
        if !records.is_empty() {
            self.write(records);
        }
    }

    /// So many milliseconds after the submission.
    pub(crate) fn at(&mut self, millis: u64) -> &mut Self {
        self.now = T0.after(Duration::from_millis(millis));
        self
    }

    /// Starts what is ready.
    pub(crate) fn start(&mut self) {
        for item in ready(&self.job, &AdmissionControl::default(), self.now) {
            self.feed(&Input::Start { item, refused: None, gate: BreakerAnswer::NoBreaker });
        }
    }

    fn start_of(&self, step: u32, item: u32) -> StartId {
        let mut running = self.job.starts.running.iter();
        let found = running.find(|(_, place)| **place == StepId(step).item(item));
        *found.unwrap_or_else(|| panic!("{step}/{item} does not run")).0
    }

    /// An item succeeds with these outputs.
    pub(crate) fn done(&mut self, step: u32, item: u32, outputs: &Value) {
        let start = self.start_of(step, item);
        self.feed(&Input::Ended(Box::new(AttemptEnd {
            start,
            output: Some(outputs.to_string()),
            ..AttemptEnd::default()
        })));
    }

    pub(crate) fn fail(&mut self, step: u32, item: u32, cause: FailureCause) {
        let start = self.start_of(step, item);
        self.feed(&Input::Ended(Box::new(AttemptEnd {
            start,
            failure: Some(cause),
            error: "rejected".to_owned(),
            ..AttemptEnd::default()
        })));
    }

    /// The flow as clients see it, read from the store.
    pub(crate) fn state(&self) -> Value {
        let flow = FollowedFlow::read(&*self.store, self.job.id(), &Plans::default()).unwrap();
        assert_eq!(flow.version, self.version);
        flow.json(None)
    }

    /// All events so far.
    pub(crate) fn events(&self) -> Vec<Value> {
        let mut past = Projection::following_all();
        let mut job: Option<Job> = None;
        let mut events = Vec::new();
        for (number, record) in (1..).zip(&self.records) {
            let job = match &mut job {
                Some(job) => {
                    job.apply(record);
                    job
                }
                None => job.insert(Job::begin(record).unwrap()),
            };
            past.take(job, number, record);
            let event = flow_event(job, &past, number, record);
            events.extend(event.map(|event| json_of(&event)));
        }
        events
    }
}

/// Sends a request as it is, and gives status, head and body of the answer.
pub(crate) fn say(address: SocketAddr, request: &str) -> (u16, String, Value) {
    let mut stream = TcpStream::connect(address).unwrap();
    // One that is refused early may not be read to its end.
    let _ = stream.write_all(request.as_bytes());
    hear(&mut stream)
}

/// Reads an answer up to the end of the connection.
pub(crate) fn hear(stream: &mut TcpStream) -> (u16, String, Value) {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).map_or(0, |it| it.parse().unwrap());
    let body = serde_json::from_str(body).unwrap_or(Value::String(body.to_owned()));
    (status, head.to_ascii_lowercase(), body)
}

/// The text of a request with these headers.
pub(crate) fn request(method: &str, path: &str, headers: &[&str], body: &str) -> String {
    let headers: String = headers.iter().flat_map(|it| [*it, "\r\n"]).collect();
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}
