//! A server of ours while it runs, and what its clients ask of it.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::client::{Answer, Connection, Follower};
use crate::http_server::StepServer;
use crate::processes::Running;
use crate::world::{Ended, World};

pub(crate) struct Served {
    running: Running,
    out: PathBuf,
    address: SocketAddr,
}

impl Served {
    /// A server somewhere, on the store of a world.
    pub(crate) fn on(world: &World) -> Self {
        Self::with(world, &["--listen", "127.0.0.1:0"], &[])
    }

    /// One at an address that stays the same.
    pub(crate) fn at(world: &World, address: &str) -> Self {
        Self::with(world, &["--listen", address], &[])
    }

    pub(crate) fn with(world: &World, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let (mut running, out) = Self::launch(world, args, variables);
        let address = World::eventually("a server that listens", || {
            let said = fs::read_to_string(&out).unwrap();
            let address = said.strip_prefix("listening at http://");
            let address = address.and_then(|it| it.strip_suffix('\n'));
            assert!(address.is_some() || !running.has_ended(), "{}", running.said());
            Some(address?.parse().unwrap())
        });
        Self { running, out, address }
    }

    /// Starts one, and gives the file it writes to.
    fn launch(world: &World, args: &[&str], variables: &[(&str, &str)]) -> (Running, PathBuf) {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let said = |what: &str| world.path(&format!("server-{number}.{what}"));
        let (out, err) = (said("out"), said("err"));
        let mut command = world.program(&[&["serve"], args].concat(), variables);
        command.stdout(fs::File::create(&out).unwrap()).stderr(fs::File::create(&err).unwrap());
        let running = Running::new(command.spawn().unwrap(), out.clone(), err);
        (running, out)
    }

    /// One that is expected to end by itself.
    pub(crate) fn refused(world: &World, args: &[&str], variables: &[(&str, &str)]) -> Ended {
        Self::launch(world, args, variables).0.wait()
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn is_gone(&mut self) -> bool {
        self.running.has_ended()
    }

    /// `kill -9`.
    pub(crate) fn kill(self) {
        self.running.kill();
    }

    pub(crate) fn signal(&self, name: &str) {
        self.running.signal(name);
    }

    pub(crate) fn wait(self) -> Ended {
        self.running.wait()
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn end(self) {
        self.signal("TERM");
        self.wait().exits(0);
    }

    /// What it has logged so far: every line is an object.
    pub(crate) fn log(&self) -> Vec<Value> {
        let said = self.running.said();
        // The last line may be half written.
        let whole = said.rfind('\n').map_or("", |end| &said[..end]);
        let lines = whole.lines();
        lines.map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
    }

    /// What it has said so far, on both outputs.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.out).unwrap() + &self.running.said()
    }

    pub(crate) fn try_ask(&self, method: &str, path: &str, body: &str) -> Option<Answer> {
        Connection::try_to(self.address)?.ask(method, path, body)
    }

    #[track_caller]
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        self.try_ask(method, path, body).unwrap()
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "")
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, &body.to_string())
    }

    pub(crate) fn follower(&self) -> Follower {
        Follower::of(self.address)
    }

    #[track_caller]
    pub(crate) fn register(&self, step: &Value) {
        self.post("/engine/step", step).is(201);
    }

    /// Starts a flow that reaches one step.
    #[track_caller]
    pub(crate) fn begin(&self, id: &str, goal: &str, init: &Value) {
        let wanted = json!({"id": id, "goals": [goal], "init": init});
        let answer = self.post("/engine/flow", &wanted).is(201);
        assert_eq!(answer["flow_id"], id);
    }

    #[track_caller]
    pub(crate) fn flow(&self, id: &str) -> Value {
        self.get(&format!("/engine/flow/{id}")).is(200)
    }

    /// Waits until a flow is as it should be.
    pub(crate) fn until(&self, id: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        World::eventually(what, || Some(self.flow(id)).filter(&wanted))
    }

    /// Waits until a flow has ended so.
    #[track_caller]
    pub(crate) fn ends(&self, id: &str, status: &str) -> Value {
        let flow = self.until(id, "the end of a flow", |flow| flow["status"] != "active");
        assert_eq!(flow["status"], status, "{flow:#}");
        flow
    }

    /// Waits until the only item of a step is as it should be.
    pub(crate) fn item(&self, id: &str, step: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let flow = self.until(id, step, |flow| only(flow, step).is_some_and(&wanted));
        only(&flow, step).unwrap().clone()
    }

    /// Waits until a flow has a place in the state of the engine.
    pub(crate) fn deactivated(&self, id: &str) {
        World::eventually("a flow that is deactivated", || {
            let engine = self.get("/engine").is(200);
            let mut gone = engine["deactivated"].as_array().unwrap().iter();
            gone.find(|flow| flow["flow_id"] == id).map(|_| ())
        });
    }
}

/// The only item of a step.
pub(crate) fn only<'f>(flow: &'f Value, step: &str) -> Option<&'f Value> {
    let items = flow["executions"][step]["work_items"].as_object()?;
    assert!(items.len() <= 1, "{flow:#}");
    items.values().next()
}

/// A text has this in it.
#[track_caller]
pub(crate) fn says(text: &Value, word: &str) {
    assert!(text.as_str().unwrap().contains(word), "{text}");
}

/// The definition of a step whose address is its id.
pub(crate) fn step(handlers: &StepServer, id: &str, attributes: &Value, more: &Value) -> Value {
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

/// A step that requires nothing, gives `x`, and is retried like this.
pub(crate) fn giver(handlers: &StepServer, id: &str, work: &Value) -> Value {
    let more = json!({"work_config": work});
    step(handlers, id, &json!({"x": {"role": "output"}}), &more)
}

/// An address that stays the same over kills, from where the system gives none away by itself.
pub(crate) fn address() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let own = u16::try_from(std::process::id() % 500).unwrap() * 20;
    loop {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let address = format!("127.0.0.1:{}", 10_000 + (own + next) % 10_000);
        if TcpListener::bind(&address).is_ok() {
            return address;
        }
    }
}
