//! Flows of one step in a store on a disk, run as a server would run them.

use std::error::Error;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use undaunted_engine::catalog::CatalogEvent;
use undaunted_engine::event::{Event, ItemEvent, JobEvent, Record};
use undaunted_engine::job::{Job, JobStage};
use undaunted_engine::workflow::Operator;
use undaunted_runner::catalog::CatalogHandle;
use undaunted_runner::drive::{Observer, Services};
use undaunted_runner::endpoints::Endpoints;
use undaunted_runner::flows::{FlowHost, FlowSubmission, HostSettings};
use undaunted_runner::folder::LocalFolder;
use undaunted_runner::machine::LocalMachine;
use undaunted_store::SqliteStore;

/// The step, and the flow if there is only one.
const MEASURED: &str = "measured";

/// A recorded event of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    Completed,
    /// The host stopped running the flow before it was completed.
    Left,
    WaitsForRetry,
    Resumed,
}

/// A host, and the events of its flows.
pub(crate) struct Running {
    pub(crate) host: FlowHost,
    happened: Receiver<Happened>,
}

/// Times one flow whose step has this many items, `width` of them at a time.
pub(crate) fn one(folder: &Path, url: &str, width: u32, items: u32) -> Result<Duration, Box<dyn Error>> {
    let running = Running::begin(folder)?;
    running.register(&json!({
        "id": MEASURED,
        "type": "sync",
        "http": { "endpoint": url },
        "work_config": { "max_retries": 3, "backoff": 1000, "parallelism": width },
        "attributes": {
            "items": { "role": "required", "for_each": true, "mapping": { "name": "item" } },
        },
    }))?;
    let items: Vec<u32> = (0..items).collect();
    let wanted = wanted(MEASURED.to_owned(), "items", json!(items));
    let began = Instant::now();
    running.host.start(&wanted)?;
    running.hear(Happened::Completed, 1)?;
    Ok(began.elapsed())
}

/// Times this many flows of one item, started by `width` threads.
pub(crate) fn many(folder: &Path, url: &str, width: u32, flows: u32) -> Result<Duration, Box<dyn Error>> {
    let running = Running::begin(folder)?;
    running.register(&single(url, &json!({ "max_retries": 3, "backoff": 1000 })))?;
    let began = Instant::now();
    running.start(width, 0..flows)?;
    running.hear(Happened::Completed, flows)?;
    Ok(began.elapsed())
}

/// The step of a flow that has one item.
pub(crate) fn single(url: &str, work: &Value) -> Value {
    json!({
        "id": MEASURED,
        "type": "sync",
        "http": { "endpoint": url },
        "work_config": work,
        "attributes": { "item": { "role": "required" } },
        // All flows call one origin, and none must be held because others have failed.
        "breaker": { "failure_threshold": 1_000_000_000 },
    })
}

fn wanted(id: String, attribute: &str, value: Value) -> FlowSubmission {
    let mut init = Map::new();
    init.insert(attribute.to_owned(), value);
    FlowSubmission { id, goals: vec![MEASURED.to_owned()], init, ..FlowSubmission::default() }
}

impl Running {
    /// Opens the store and starts a host, without recovering any flow.
    pub(crate) fn begin(folder: &Path) -> Result<Self, Box<dyn Error>> {
        let store = Arc::new(SqliteStore::open(folder)?);
        let book = CatalogHandle::open(Arc::<SqliteStore>::clone(&store))?;
        let world = Services {
            store,
            local: LocalFolder::new(folder),
            // No step of these flows is a program.
            machine: Arc::new(LocalMachine::default()),
            grace: Duration::from_secs(5),
            check_interval: Duration::from_secs(5),
            catalog: None,
            endpoints: Endpoints::default(),
            env: Vec::new(),
        };
        let (tell, happened) = channel();
        let told = tell.clone();
        let settings = HostSettings {
            operator: Operator::default(),
            webhooks: String::new(),
            release: env!("CARGO_PKG_VERSION").to_owned(),
            directory: "/".to_owned(),
            watch: Box::new(move |_| Box::new(Watching { tell: tell.clone() })),
            left: Box::new(move |_, left| {
                let completed = matches!(left, Ok(job) if job.stage == JobStage::Completed);
                let _ = told.send(if completed { Happened::Completed } else { Happened::Left });
            }),
        };
        let host = FlowHost::begin(world, book, settings);
        Ok(Self { host, happened })
    }

    pub(crate) fn register(&self, step: &Value) -> Result<(), Box<dyn Error>> {
        let registered =
            CatalogEvent::StepRegistered { id: self.host.check_step(step)?, definition: step.to_string() };
        let wish = move |_: &_| Ok::<_, std::convert::Infallible>(vec![registered.clone()]);
        drop(self.host.catalog().change(wish)?);
        Ok(())
    }

    /// Starts the flows with these numbers from this many threads.
    pub(crate) fn start(&self, threads: u32, flows: Range<u32>) -> Result<(), Box<dyn Error>> {
        let (host, next) = (&self.host, AtomicU32::new(flows.start));
        let begin = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= flows.end {
                    return Ok(());
                }
                let wanted = wanted(format!("measured-{number}"), "item", json!(number));
                let begun = host.start(&wanted);
                begun.map_err(|error| error.to_string())?;
            }
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(begin)).collect();
            let ended = threads.into_iter().map(ScopedJoinHandle::join);
            let mut ended = ended.map(|ended| ended.map_err(|_| "a thread has panicked")?);
            ended.try_for_each(|begun: Result<(), String>| begun)
        })?;
        Ok(())
    }

    pub(crate) fn hear(&self, what: Happened, times: u32) -> Result<(), Box<dyn Error>> {
        let mut heard = 0_u32;
        while heard < times {
            let happened = self.happened.recv()?;
            if happened == Happened::Left {
                return Err("a flow did not complete".into());
            }
            heard = heard.saturating_add(u32::from(happened == what));
        }
        Ok(())
    }
}

/// Reports the records that a benchmark waits for.
struct Watching {
    tell: Sender<Happened>,
}

impl Observer for Watching {
    fn recorded(&mut self, _: &Job, _: u64, record: &Record) {
        let happened = match record.event {
            Event::Item(ItemEvent::RetryScheduled(_)) => Happened::WaitsForRetry,
            Event::Job(JobEvent::Resumed(_)) => Happened::Resumed,
            _ => return,
        };
        // The receiver is gone when the benchmark has all events.
        let _ = self.tell.send(happened);
    }
}
