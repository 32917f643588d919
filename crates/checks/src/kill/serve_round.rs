//! A round of servers: clients submit flows while the servers are killed and restarted; then all is left
//! alone until every flow has ended.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::compare::{KillEvidence, ServedCall, compare};
use super::findings::KillFindings;
use super::journal;
use super::plan::{CommandKind, KillPlan, PlannedCommand};
use super::policy::DrawnPolicy;
use super::sandbox::{RoundSandbox, deadline};
use super::schedule;
use super::servers::{ManagedServer, ask, free_address};
use super::step_server::RecordingStepServer;
use crate::random::SeededRandom;

const FINISH_WITHIN: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(1);

struct ServeRound<'w> {
    sandbox: &'w RoundSandbox,
    random: SeededRandom,
    steps: RecordingStepServer,
    plan: KillPlan,
    definitions: Vec<Value>,
    flows: Vec<String>,
    findings: KillFindings,
}

pub(crate) fn round(sandbox: &RoundSandbox, seed: u64) -> io::Result<KillFindings> {
    let mut round = ServeRound {
        sandbox,
        random: SeededRandom::new(seed),
        steps: RecordingStepServer::start(seed)?,
        plan: KillPlan::default(),
        definitions: Vec::new(),
        flows: Vec::new(),
        findings: KillFindings::default(),
    };
    round.draw();
    let many = round.random.between(1, 2);
    let mut servers = Vec::new();
    for _ in 0..many {
        let plans = schedule::of_server(&mut round.random, seed / 5);
        servers.push(ManagedServer::at(sandbox, free_address()?, plans));
    }
    round.register()?;
    let is_over = round.serve(&mut servers)?;
    for server in &mut servers {
        server.kill()?;
    }
    sandbox.note_deaths();
    if is_over {
        round.compare()?;
    }
    sandbox.report_deaths(&mut round.findings);
    Ok(round.findings)
}

impl ServeRound<'_> {
    /// Two steps: one that outputs a list, and one that runs for each of its elements.
    fn draw(&mut self) {
        let random = &mut self.random;
        let (first, second) = (flow_policy(random), flow_policy(random));
        let is_async = random.chance(1, 2);
        let origin = self.steps.origin();
        let url = |random: &mut SeededRandom, id: &str, more: &str| {
            let fails = random.one_of(&[0, 20, 40]).copied().unwrap_or_default();
            let takes = random.one_of(&[0, 10, 60]).copied().unwrap_or_default();
            format!("{origin}/{id}?fails={fails}&takes={takes}{more}")
        };
        let breaker = json!({"failure_threshold": 1000});
        let gives = random.between(1, 4);
        let a = json!({
            "id": "a", "name": "a", "type": "sync", "breaker": breaker,
            "http": {"endpoint": url(random, "a", &format!("&gives={gives}"))},
            "work_config": first.work_config(),
            "attributes": {"n": {"role": "required"}, "xs": {"role": "output"}},
        });
        let mut work = second.work_config();
        let width = random.between(1, 3);
        if let Some(work) = work.as_object_mut() {
            work.insert("parallelism".to_owned(), json!(width));
        }
        let b = json!({
            "id": "b", "name": "b", "type": if is_async { "async" } else { "sync" }, "breaker": breaker,
            "http": {"endpoint": url(random, "b", "&later=60")},
            "work_config": work,
            "attributes": {"xs": {"role": "required", "for_each": true}, "y": {"role": "output"}},
        });
        let kind = if is_async { CommandKind::Later } else { CommandKind::Call };
        self.plan.commands = [
            ("a".to_owned(), PlannedCommand::of(CommandKind::Call, first)),
            ("b".to_owned(), PlannedCommand::of(kind, second)),
        ]
        .into();
        self.plan.is_flow = true;
        self.plan.width = usize::try_from(width).ok();
        self.definitions = vec![a, b];
        let flows = random.between(2, 6);
        self.flows = (1..=flows).map(|number| format!("f{number}")).collect();
    }

    /// Registers the steps with an undisturbed server.
    fn register(&self) -> io::Result<()> {
        let mut server = ManagedServer::at(self.sandbox, free_address()?, Vec::new());
        server.listens()?;
        for step in &self.definitions {
            let answer = ask(server.address(), "POST", "/engine/step", &step.to_string());
            if answer.as_ref().is_none_or(|it| it.status != 201) {
                return Err(io::Error::other(format!("{step} is answered {answer:?}")));
            }
        }
        server.kill()
    }

    /// Runs the servers while clients submit flows. True if all flows have ended.
    fn serve(&mut self, servers: &mut [ManagedServer<'_>]) -> io::Result<bool> {
        let addresses: Vec<SocketAddr> = servers.iter().map(ManagedServer::address).collect();
        let given_up = AtomicBool::new(false);
        let refused = Mutex::new(Vec::new());
        let flows = self.flows.clone();
        let (findings, given_up, refused) = (&mut self.findings, &given_up, &refused);
        let is_over = thread::scope(|scope| {
            let addresses = &addresses;
            let client = scope.spawn(move || {
                for flow in &flows {
                    request_flow(addresses, flow, given_up, refused);
                }
            });
            let over = watch(servers, || client.is_finished(), addresses, &self.flows, findings);
            given_up.store(true, Ordering::Relaxed);
            over
        })?;
        let refused = refused.lock().map(|it| it.clone()).unwrap_or_default();
        for refusal in refused {
            findings.lost(format_args!("{refusal}"));
        }
        Ok(is_over)
    }

    fn compare(&mut self) -> io::Result<()> {
        let (calls, posted) = (self.steps.calls(), self.steps.posted());
        let kills = self.sandbox.kills();
        let mut known: BTreeSet<String> = BTreeSet::new();
        for flow in &self.flows {
            let output = self.sandbox.call(&["events", flow, "--json"])?;
            let Some(events) = journal::read(&output.out).filter(|it| !it.is_empty()) else {
                self.findings
                    .lost(format_args!("flow {flow} was answered 201 and is not on record: {}", output.err));
                continue;
            };
            let own: BTreeSet<&str> = events.iter().map(|it| it.text("correlation_id")).collect();
            let mine: Vec<ServedCall> =
                calls.iter().filter(|it| own.contains(it.correlation.as_str())).cloned().collect();
            known.extend(own.into_iter().map(str::to_owned));
            let case = KillEvidence {
                plan: &self.plan,
                events: &events,
                runs: &[],
                calls: &mine,
                posted: &posted,
                kills: &kills,
            };
            self.findings.absorb(compare(&case));
        }
        for call in calls.iter().filter(|it| !known.contains(&it.correlation)) {
            self.findings.lost(format_args!("a request of no recorded item: {call:?}"));
        }
        Ok(())
    }
}

/// Polls the servers until they are left alone and every flow has ended.
fn watch(
    servers: &mut [ManagedServer<'_>],
    all_asked: impl Fn() -> bool,
    addresses: &[SocketAddr],
    flows: &[String],
    findings: &mut KillFindings,
) -> io::Result<bool> {
    let mut finish_until = None;
    loop {
        for server in &mut *servers {
            server.poll(findings)?;
        }
        if servers.iter().all(ManagedServer::is_left_alone) {
            let until = *finish_until.get_or_insert_with(|| deadline(FINISH_WITHIN));
            let open = open_flows(addresses, flows);
            if all_asked() && open.is_empty() {
                return Ok(true);
            }
            if Instant::now() >= until {
                findings.lost(format_args!("flows {open:?} do not end within {FINISH_WITHIN:?}"));
                return Ok(false);
            }
            thread::sleep(Duration::from_millis(10));
        }
        thread::sleep(PAUSE);
    }
}

/// The flows that have not ended.
fn open_flows(addresses: &[SocketAddr], flows: &[String]) -> Vec<String> {
    let Some(address) = addresses.first() else {
        return Vec::new();
    };
    let is_open = |flow: &&String| {
        let answer = ask(*address, "GET", &format!("/engine/flow/{flow}"), "");
        let answer = answer.filter(|it| it.status == 200);
        let flow: Option<Value> = answer.and_then(|it| serde_json::from_str(&it.body).ok());
        flow.is_none_or(|flow| flow.get("status").is_none_or(|it| it == "active"))
    };
    flows.iter().filter(is_open).cloned().collect()
}

/// Submits a flow to the servers in turn until one has stored it.
fn request_flow(addresses: &[SocketAddr], flow: &str, given_up: &AtomicBool, refused: &Mutex<Vec<String>>) {
    let wish = json!({"id": flow, "goals": ["b"], "init": {"n": 1}}).to_string();
    for address in addresses.iter().cycle() {
        if given_up.load(Ordering::Relaxed) {
            return;
        }
        let answer = ask(*address, "POST", "/engine/flow", &wish);
        match answer {
            Some(answer) if answer.status == 201 => return,
            Some(answer) if answer.status != 503 => {
                if let Ok(mut refused) = refused.lock() {
                    refused.push(format!("flow {flow} is answered {answer:?}"));
                }
                return;
            }
            _ => thread::sleep(Duration::from_millis(3)),
        }
    }
}

/// Mostly more retries than there are kills and failures.
fn flow_policy(random: &mut SeededRandom) -> DrawnPolicy {
    let retries = if random.chance(1, 4) { random.between(1, 4) } else { 30 };
    let first = random.between(5, 60);
    DrawnPolicy::of_flow(retries, first, random.between(first, 120), random.chance(1, 2))
}
