//! `undaunted serve` while it runs, and the requests of its clients.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use std::thread;

use serde_json::{Value, json};

use crate::client::{Connection, EventFollower, ReceivedAnswer, send_result};
use crate::http_server::{Reply, ScriptedServer};
use crate::processes::ChildProcess;
use crate::sandbox::{FinishedProcess, Sandbox};

const LOCAL: [&str; 2] = ["--listen", "127.0.0.1:0"];

pub(crate) struct RunningServer {
    running: ChildProcess,
    out: PathBuf,
    address: SocketAddr,
}

impl RunningServer {
    /// Starts a server on the store of a sandbox, at any free port.
    pub(crate) fn on(sandbox: &Sandbox) -> Self {
        Self::with(sandbox, &LOCAL, &[])
    }

    /// The same with more arguments.
    pub(crate) fn on_with(sandbox: &Sandbox, args: &[&str]) -> Self {
        Self::with(sandbox, &[&LOCAL, args].concat(), &[])
    }

    pub(crate) fn at(sandbox: &Sandbox, address: &str) -> Self {
        Self::with(sandbox, &["--listen", address], &[])
    }

    pub(crate) fn with(sandbox: &Sandbox, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let (mut running, out) = Self::launch(sandbox, args, variables);
        let address = Sandbox::eventually("a server that listens", || {
            let output = fs::read_to_string(&out).unwrap();
            let address = output.strip_prefix("listening on http://");
            let address = address.and_then(|it| it.strip_suffix('\n'));
            assert!(address.is_some() || !running.has_ended(), "{}", running.stderr());
            Some(address?.parse().unwrap())
        });
        Self { running, out, address }
    }

    /// Starts a server. Returns the file of its stdout as well.
    fn launch(sandbox: &Sandbox, args: &[&str], variables: &[(&str, &str)]) -> (ChildProcess, PathBuf) {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let output = |stream: &str| sandbox.path(&format!("server-{number}.{stream}"));
        let (out, err) = (output("out"), output("err"));
        let mut command = sandbox.program(&[&["serve"], args].concat(), variables);
        command.stdout(fs::File::create(&out).unwrap()).stderr(fs::File::create(&err).unwrap());
        let running = ChildProcess::new(command.spawn().unwrap(), out.clone(), err);
        (running, out)
    }

    /// Starts a server that is expected to refuse its arguments or variables.
    #[track_caller]
    pub(crate) fn refused(sandbox: &Sandbox, args: &[&str], variables: &[(&str, &str)]) -> FinishedProcess {
        Self::launch(sandbox, args, variables).0.wait().exits(2)
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.running.has_ended()
    }

    /// `kill -9`.
    pub(crate) fn kill(self) {
        self.running.kill();
    }

    pub(crate) fn pid(&self) -> i32 {
        self.running.pid()
    }

    pub(crate) fn signal(&self, name: &str) {
        self.running.signal(name);
    }

    pub(crate) fn wait(self) -> FinishedProcess {
        self.running.wait()
    }

    /// Sends SIGTERM and waits for the clean end.
    pub(crate) fn stop(self) {
        self.signal("TERM");
        self.wait().exits(0);
    }

    /// The log so far, as JSON lines.
    pub(crate) fn log(&self) -> Vec<Value> {
        let log = self.running.stderr();
        // The last line may be half written.
        let complete = log.rfind('\n').map_or("", |end| &log[..end]);
        let lines = complete.lines();
        lines.map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
    }

    /// Stdout and stderr so far.
    pub(crate) fn output(&self) -> String {
        fs::read_to_string(&self.out).unwrap() + &self.running.stderr()
    }

    pub(crate) fn try_ask(&self, method: &str, path: &str, body: &str) -> Option<ReceivedAnswer> {
        Connection::try_open(self.address)?.ask(method, path, body)
    }

    #[track_caller]
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> ReceivedAnswer {
        self.try_ask(method, path, body).unwrap()
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> ReceivedAnswer {
        self.ask("GET", path, "")
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &Value) -> ReceivedAnswer {
        self.ask("POST", path, &body.to_string())
    }

    pub(crate) fn follower(&self) -> EventFollower {
        EventFollower::connect(self.address)
    }

    #[track_caller]
    pub(crate) fn register(&self, step: &Value) {
        self.post("/engine/step", step).is(201);
    }

    /// Starts a flow with one goal.
    #[track_caller]
    pub(crate) fn start_flow(&self, id: &str, goal: &str, init: &Value) {
        self.start_flow_with(id, &json!({"goals": [goal], "init": init}));
    }

    /// Starts a flow.
    #[track_caller]
    pub(crate) fn start_flow_with(&self, id: &str, body: &Value) {
        let mut body = body.clone();
        body["id"] = json!(id);
        let answer = self.post("/engine/flow", &body).is(201);
        assert_eq!(answer["flow_id"], id);
    }

    #[track_caller]
    pub(crate) fn query(&self, query: &Value) -> Value {
        self.post("/engine/flow/query", query).is(200)
    }

    /// Waits until this many flows have completed.
    pub(crate) fn wait_for_completed(&self, many: usize) {
        let query = json!({"statuses": ["completed"], "limit": 1});
        Sandbox::wait_until("the end of all flows", || self.query(&query)["total"] == many);
    }

    /// All flows.
    #[track_caller]
    pub(crate) fn list(&self) -> Vec<Value> {
        self.get("/engine/flow").is(200).as_array().unwrap().clone()
    }

    #[track_caller]
    pub(crate) fn flow(&self, id: &str) -> Value {
        self.get(&format!("/engine/flow/{id}")).is(200)
    }

    /// Waits until a flow satisfies a condition.
    pub(crate) fn wait_for_flow(&self, id: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        Sandbox::eventually(what, || Some(self.flow(id)).filter(&wanted))
    }

    /// Waits for the end of a flow, which must have this status.
    #[track_caller]
    pub(crate) fn wait_for_end(&self, id: &str, status: &str) -> Value {
        let flow = self.wait_for_flow(id, "the end of a flow", |flow| flow["status"] != "active");
        assert_eq!(flow["status"], status, "{flow:#}");
        flow
    }

    /// Starts a flow with one goal and waits for its end.
    #[track_caller]
    pub(crate) fn run_flow(&self, id: &str, goal: &str, init: &Value, status: &str) -> Value {
        self.start_flow(id, goal, init);
        self.wait_for_end(id, status)
    }

    /// Waits until the only item of a step satisfies a condition.
    pub(crate) fn wait_for_item(&self, id: &str, step: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let flow = self.wait_for_flow(id, step, |flow| only_item(flow, step).is_some_and(&wanted));
        only_item(&flow, step).unwrap().clone()
    }

    /// Waits for the first retry of the only item of a step.
    pub(crate) fn wait_for_first_retry(&self, id: &str, step: &str) -> Value {
        self.wait_for_item(id, step, |item| item["retry_count"] == 1)
    }

    /// Waits for the end of a flow whose output `x` has this value.
    #[track_caller]
    pub(crate) fn completes_with_x(&self, id: &str, x: &Value) -> Value {
        let flow = self.wait_for_end(id, "completed");
        assert_eq!(flow["attributes"]["x"]["value"], *x, "{flow:#}");
        flow
    }

    /// Waits until the catalog lists a flow as deactivated.
    pub(crate) fn wait_for_deactivation(&self, id: &str) {
        Sandbox::wait_until("a flow that is deactivated", || {
            let engine = self.get("/engine").is(200);
            let mut deactivated = engine["deactivated"].as_array().unwrap().iter();
            deactivated.any(|flow| flow["flow_id"] == id)
        });
    }
}

/// A server and the handlers of its only step `a`, which outputs `x`.
pub(crate) fn one_step(replies: &[Reply], work: &Value) -> (Sandbox, ScriptedServer, RunningServer) {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start().on("/a", replies);
    let served = RunningServer::on(&sandbox);
    served.register(&provider(&handlers, "a", work));
    (sandbox, handlers, served)
}

/// Starts flows `0..many` on these servers in turn, over 16 connections to each at the same time.
pub(crate) fn start_flows(servers: &[SocketAddr], many: usize, flow: impl Fn(usize) -> Value + Sync) {
    const CLIENTS: usize = 16;
    let flow = &flow;
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            scope.spawn(move || {
                let connections = servers.iter().map(|server| Connection::open(*server));
                let mut connections: Vec<Connection> = connections.collect();
                for n in (client..many).step_by(CLIENTS) {
                    let connection = &mut connections[n / CLIENTS % servers.len()];
                    let flow = flow(n);
                    let answer = connection.ask("POST", "/engine/flow", &flow.to_string()).unwrap().is(201);
                    assert_eq!(answer["flow_id"], flow["id"]);
                }
            });
        }
    });
}

/// Sends a result until a server accepts it.
pub(crate) fn deliver(url: &str, result: impl AsRef<[u8]>) {
    Sandbox::wait_until("an accepted result", || {
        send_result(url, &result).is_some_and(|answer| answer.status == 200)
    });
}

/// The only item of a step.
pub(crate) fn only_item<'f>(flow: &'f Value, step: &str) -> Option<&'f Value> {
    let items = flow["executions"][step]["work_items"].as_object()?;
    assert!(items.len() <= 1, "{flow:#}");
    items.values().next()
}

/// A `work_config` with this many retries, which follow at once.
pub(crate) fn retries(max: i64) -> Value {
    json!({"max_retries": max, "backoff": 1})
}

/// The definition of a sync step whose path is its id.
pub(crate) fn step(handlers: &ScriptedServer, id: &str, attributes: &Value, more: &Value) -> Value {
    let mut step = json!({
        "id": id, "name": id, "type": "sync",
        "http": {"endpoint": handlers.url(&format!("/{id}"))},
        "attributes": attributes,
    });
    for (key, value) in more.as_object().unwrap() {
        step[key] = value.clone();
    }
    step
}

/// A step that requires nothing and outputs `x`, with this `work_config`.
pub(crate) fn provider(handlers: &ScriptedServer, id: &str, work: &Value) -> Value {
    let more = json!({"work_config": work});
    step(handlers, id, &json!({"x": {"role": "output"}}), &more)
}

/// A step like [`giver`] whose result comes by webhook.
pub(crate) fn async_step(handlers: &ScriptedServer, id: &str, work: &Value) -> Value {
    let mut step = provider(handlers, id, work);
    step["type"] = json!("async");
    step
}

/// A step that requires `x` and outputs `y`.
pub(crate) fn follower_step(handlers: &ScriptedServer, id: &str, more: &Value) -> Value {
    step(handlers, id, &json!({"x": {"role": "required"}, "y": {"role": "output"}}), more)
}
