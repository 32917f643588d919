//! 64 flows in four processes on one breaker, with an outage and a process that is killed during it.
//!
//! The laws are checked on three independent records: the journal of the breaker, the journals of the jobs,
//! and the requests that the step server received.

use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::history::{all, changes, count, kind, millis, outcomes, probes, text};
use crate::http_server::{ReceivedRequest, Reply, ScriptedServer};
use crate::sandbox::Sandbox;
use crate::served::{RunningServer, provider};

const SERVERS: usize = 4;
const FLOWS_EACH: usize = 16;
const FLOWS: usize = SERVERS * FLOWS_EACH;
const KILLS: usize = 2;
const FAILURE_THRESHOLD: usize = 5;
const HALF_OPEN_MAX_CALLS: usize = 2;
/// Within this many milliseconds every process knows that another one has opened the breaker.
const KNOWN_AFTER: i64 = 200;
/// The recovery timeout. No request is sent between [`KNOWN_AFTER`] and the first probe, so on a busy machine
/// a request may arrive late by the difference and is still not taken for a probe.
const RECOVERY: i64 = 1000;
/// Longer than [`KNOWN_AFTER`], so that no process may start a retry of an attempt that failed after the
/// opening.
const BACKOFF: i64 = 250;

/// The handler of all flows: it fails until it is healed, and can hold requests back.
#[derive(Default)]
struct CountingTarget {
    state: Mutex<CountingTargetState>,
    changed: Condvar,
}

#[derive(Default)]
struct CountingTargetState {
    is_healed: bool,
    /// Whether new requests are held back.
    keeps: bool,
    /// The flows whose requests were held back, in order.
    kept: Vec<String>,
    /// How many of them were answered.
    released: usize,
    calls: Vec<AnsweredCall>,
}

#[derive(Clone, Debug)]
struct AnsweredCall {
    flow: String,
    came: i64,
    answered: i64,
}

impl CountingTarget {
    fn reply(&self, request: &ReceivedRequest) -> Reply {
        let mut state = self.state.lock().unwrap();
        if state.keeps {
            state.kept.push(flow_of(request));
            let position = state.kept.len();
            while state.released < position {
                state = self.changed.wait(state).unwrap();
            }
        }
        state.calls.push(AnsweredCall {
            flow: flow_of(request),
            came: instant(request.at),
            answered: instant(SystemTime::now()),
        });
        if state.is_healed { Reply::x(1) } else { Reply::status(503) }
    }

    /// Holds the next requests back until this many have come. Returns the flow of the last one.
    fn keep(&self, many: usize, send: impl FnOnce()) -> String {
        let mut state = self.state.lock().unwrap();
        let wanted = state.kept.len() + many;
        state.keeps = true;
        drop(state);
        send();
        Sandbox::eventually("a request that is held back", || {
            let mut state = self.state.lock().unwrap();
            let last = state.kept.get(wanted - 1).cloned()?;
            state.keeps = false;
            Some(last)
        })
    }

    /// Answers the requests that are held back.
    fn release(&self) {
        let mut state = self.state.lock().unwrap();
        state.released = state.kept.len();
        self.changed.notify_all();
    }

    fn heal(&self) {
        self.state.lock().unwrap().is_healed = true;
    }

    /// All answered requests, in order of arrival.
    fn calls(&self) -> Vec<AnsweredCall> {
        let mut calls = self.state.lock().unwrap().calls.clone();
        calls.sort_by_key(|call| call.came);
        calls
    }
}

fn flow_of(request: &ReceivedRequest) -> String {
    text(&request.json()["metadata"]["flow_id"])
}

fn flow(server: usize, number: usize) -> String {
    format!("f{server}-{number}")
}

/// The server on which a flow was started.
fn server_of(flow: &str) -> usize {
    flow[1..].split('-').next().unwrap().parse().unwrap()
}

/// A time on the scale of [`millis`].
fn instant(at: SystemTime) -> i64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap().as_millis();
    millis(&json!("1970-01-01T00:00:00.000Z")) + i64::try_from(since).unwrap()
}

/// Starts all flows but the first of each server, on all servers at the same time.
fn begin_the_others(servers: &[RunningServer], first: usize) {
    thread::scope(|scope| {
        for (server, served) in (first..).zip(servers) {
            scope.spawn(move || {
                for number in 1..FLOWS_EACH {
                    served.start_flow(&flow(server, number), "a", &json!({}));
                }
            });
        }
    });
}

/// Kills the probing process during its probe, and the same server once more during a later probe of any
/// process. Returns the times of the kills.
fn kill_in_probes(
    sandbox: &Sandbox,
    servers: &mut Vec<RunningServer>,
    target: &CountingTarget,
    breaker: &str,
) -> Vec<i64> {
    let mut victim = None;
    let mut kills = Vec::new();
    for _ in 0..KILLS {
        let probing = target.keep(1, || {});
        let victim = *victim.get_or_insert_with(|| server_of(&probing));
        kills.push(instant(SystemTime::now()));
        servers.remove(victim).kill();
        target.release();
        servers.insert(victim, RunningServer::on(sandbox));
        let before = changes(&sandbox.breaker(breaker), "opened");
        sandbox.wait_for_breaker(breaker, |breaker| changes(breaker, "opened") > before);
    }
    kills
}

/// An attempt in the journal of its job.
#[derive(Debug)]
struct FoundAttempt {
    flow: String,
    is_probe: bool,
    started: i64,
    ended: i64,
    cause: String,
}

/// The attempts of a flow. Asserts that it completed with exactly one success and that its attempts are
/// numbered one by one.
fn attempts_of(sandbox: &Sandbox, flow: &str) -> Vec<FoundAttempt> {
    let events = sandbox.lawful_events_of(flow);
    assert_eq!(kind(events.last().unwrap()), "job_completed", "{flow}");
    assert_eq!(count(&events, "item_succeeded"), 1, "{flow}");
    let outcomes = outcomes(&events);
    let succeeded = outcomes.iter().filter(|it| *it == "success").count();
    assert_eq!(succeeded, 1, "{flow}: {outcomes:?}");
    let started = all(&events, "attempt_started");
    let highest = started.iter().map(|event| event["attempt"].as_u64());
    assert_eq!(highest.max().flatten(), u64::try_from(started.len()).ok(), "{flow}");
    // A flow has one item, so its attempts do not overlap.
    let ended = events.iter().filter(|event| ["attempt_succeeded", "attempt_failed"].contains(&kind(event)));
    let pairs = started.iter().zip(ended).zip(outcomes);
    let attempts = pairs.map(|((start, end), cause)| FoundAttempt {
        flow: flow.to_owned(),
        is_probe: start["probe"].as_bool().unwrap(),
        started: millis(&start["at"]),
        ended: millis(&end["at"]),
        cause,
    });
    attempts.collect()
}

/// The times at which a breaker changed like this.
fn instants(breaker: &Value, word: &str) -> Vec<i64> {
    let history = breaker["history"].as_array().unwrap().iter();
    let matching = history.filter(|change| change["change"] == word);
    matching.map(|change| millis(&change["at"])).collect()
}

/// Asserts that in the journal of the breaker every probe ends before the next one starts.
fn probes_alternate(breaker: &Value) {
    let mut is_probing = false;
    for change in breaker["history"].as_array().unwrap() {
        match change["change"].as_str().unwrap() {
            "half_opened" | "probe" => {
                assert!(!is_probing, "{breaker:#}");
                is_probing = true;
            }
            "opened" | "closed" | "probe_succeeded" | "probe_lost" => is_probing = false,
            _ => {}
        }
    }
    assert!(!is_probing, "{breaker:#}");
}

/// Asserts that in the journals of the jobs, too, a probe ends or is given up before the next one starts.
fn probes_never_overlap(attempts: &[FoundAttempt], breaker: &Value) {
    let lost = instants(breaker, "probe_lost");
    let mut probing: Vec<&FoundAttempt> = attempts.iter().filter(|it| it.is_probe).collect();
    probing.sort_by_key(|it| it.started);
    for pair in probing.windows(2) {
        let (one, next) = (pair[0], pair[1]);
        let given_up = lost.iter().copied().find(|at| *at >= one.started);
        let end = given_up.map_or(one.ended, |at| at.min(one.ended));
        assert!(end <= next.started, "{one:?} {next:?} {breaker:#}");
    }
}

/// Asserts that the step server received every attempt, except perhaps interrupted ones, and that between
/// opening and closing of the breaker it received one request at a time, all of them probes.
fn calls_are_the_attempts(
    calls: &[AnsweredCall],
    attempts: &[FoundAttempt],
    (opened, closed): (i64, i64),
    kills: &[i64],
) {
    for server in 0..SERVERS {
        for number in 0..FLOWS_EACH {
            let flow = flow(server, number);
            let received = calls.iter().filter(|it| it.flow == flow).count();
            let own = attempts.iter().filter(|it| it.flow == flow);
            let (started, interrupted) = counted(own);
            assert!(
                (started - interrupted..=started).contains(&received),
                "{flow}: {received} requests, {started} attempts"
            );
        }
    }
    let (probed, interrupted) = counted(attempts.iter().filter(|it| it.is_probe));
    let held = opened + RECOVERY..closed;
    let held = calls.iter().filter(|it| held.contains(&it.came));
    let held: Vec<&AnsweredCall> = held.collect();
    assert!(
        (probed - interrupted..=probed).contains(&held.len()),
        "{} requests, {probed} probes",
        held.len()
    );
    for pair in held.windows(2) {
        let (one, next) = (pair[0], pair[1]);
        // A killed process does not wait for its answer.
        let killed = kills.iter().copied().find(|at| *at >= one.came);
        let end = killed.map_or(one.answered, |at| at.min(one.answered));
        assert!(end <= next.came, "{one:?} {next:?}");
    }
}

/// How many attempts there are, and how many of them were interrupted.
fn counted<'a>(attempts: impl Iterator<Item = &'a FoundAttempt>) -> (usize, usize) {
    let causes: Vec<&str> = attempts.map(|it| it.cause.as_str()).collect();
    let interrupted = causes.iter().filter(|it| **it == "interrupted").count();
    (causes.len(), interrupted)
}

/// Asserts that waiting for a breaker uses no attempt.
fn attempts_are_bounded(attempts: &[FoundAttempt], breaker: &Value, (opened, closed): (i64, i64)) {
    let others = attempts.iter().filter(|it| !it.is_probe);
    let (after, before): (Vec<&FoundAttempt>, Vec<&FoundAttempt>) =
        others.partition(|it| it.started >= closed);
    let late = before.iter().map(|it| it.started - opened).max().unwrap();
    let probed = probes(breaker);
    println!(
        "latest start {late} ms after the opening; {} attempts that are no probes before the closing, \
         {probed} probes ({} lost), {} attempts",
        before.len(),
        changes(breaker, "probe_lost"),
        attempts.len(),
    );
    assert!(late <= KNOWN_AFTER, "{late} ms after {breaker:#}");
    // All flows of servers 2 and 3 but the first were started when every process knew of the opening, so they
    // only wait. Each other flow starts at most one attempt that fails after the opening, because its retry
    // would be due later than `KNOWN_AFTER`. Attempts that failed before the opening may have been retried,
    // but there are only as many of those as it takes to open the breaker.
    let begun = FLOWS - 2 * (FLOWS_EACH - 1);
    let bound = begun + FAILURE_THRESHOLD;
    assert!(before.len() <= bound, "{} of {bound}", before.len());
    let waited = |it: &&&FoundAttempt| server_of(&it.flow) >= 2 && !it.flow.ends_with("-0");
    assert_eq!(before.iter().filter(waited).count(), 0);
    // The outage is over when the breaker closes: the next attempt of each flow is its last.
    assert_eq!(after.len(), FLOWS - HALF_OPEN_MAX_CALLS);
    assert!(after.iter().all(|it| it.cause == "success"), "{after:?}");
    // All other attempts are probes, as many as the breaker knows of.
    let started = attempts.iter().filter(|it| it.is_probe).count();
    assert_eq!(started, probed, "{breaker:#}");
    // Only a probe can be under way at a kill.
    let (_, interrupted) = counted(attempts.iter());
    assert!((1..=KILLS).contains(&interrupted), "{interrupted}");
}

#[test]
fn sixty_four_flows_of_four_servers_wait_out_an_outage_that_one_process_at_a_time_probes() {
    let sandbox = Sandbox::new();
    let target = Arc::new(CountingTarget::default());
    let of_calls = Arc::clone(&target);
    let handlers = ScriptedServer::start().by("/a", move |request| of_calls.reply(request));
    let mut servers: Vec<RunningServer> = (0..SERVERS).map(|_| RunningServer::on(&sandbox)).collect();
    let work = json!({"max_retries": 30, "backoff": BACKOFF, "backoff_type": "fixed"});
    let mut step = provider(&handlers, "a", &work);
    step["breaker"] = json!({
        "failure_threshold": FAILURE_THRESHOLD, "recovery_timeout": "1s",
        "half_open_max_calls": HALF_OPEN_MAX_CALLS,
    });
    servers[0].register(&step);
    let name = handlers.origin();

    // Every process has an attempt in flight that the closed breaker admitted, and would start more if it did
    // not read the breaker's journal again.
    target.keep(SERVERS, || {
        for (server, served) in servers.iter().enumerate() {
            served.start_flow(&flow(server, 0), "a", &json!({}));
        }
    });
    begin_the_others(&servers[..2], 0);
    let breaker = sandbox.wait_for_open_breaker(&name);
    let opened = instants(&breaker, "opened")[0];
    Sandbox::wait_until("processes that know of the opening", || {
        instant(SystemTime::now()) > opened + KNOWN_AFTER
    });
    begin_the_others(&servers[2..], 2);
    target.release();
    let kills = kill_in_probes(&sandbox, &mut servers, &target, &name);
    target.heal();
    servers[0].wait_for_completed(FLOWS);

    let breaker = sandbox.breaker(&name);
    assert_eq!(breaker["state"], "closed");
    assert_eq!(changes(&breaker, "closed"), 1, "{breaker:#}");
    let span = (opened, instants(&breaker, "closed")[0]);
    let flows = (0..SERVERS).flat_map(|server| (0..FLOWS_EACH).map(move |n| flow(server, n)));
    let attempts: Vec<FoundAttempt> = flows.flat_map(|flow| attempts_of(&sandbox, &flow)).collect();
    probes_alternate(&breaker);
    probes_never_overlap(&attempts, &breaker);
    attempts_are_bounded(&attempts, &breaker, span);
    calls_are_the_attempts(&target.calls(), &attempts, span, &kills);
}
