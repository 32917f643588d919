//! 64 flows in four processes on one breaker: an outage, and a process that is killed in it.
//!
//! The laws are checked on three records that know nothing of each other: the journal of the breaker,
//! the journals of the jobs, and what the step server saw.

use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::history::{all, changes, is_lawful, kind, millis, outcomes, probes, text};
use crate::http_server::{Reply, Request, StepServer};
use crate::served::{Served, giver};
use crate::world::World;

const SERVERS: usize = 4;
const FLOWS_EACH: usize = 16;
const FLOWS: usize = SERVERS * FLOWS_EACH;
const KILLS: usize = 2;
const FAILURE_THRESHOLD: usize = 5;
const HALF_OPEN_MAX_CALLS: usize = 2;
/// Within so many milliseconds every process knows that another one has opened the breaker.
const KNOWN_AFTER: i64 = 200;
/// The recovery timeout. Nothing is sent between [`KNOWN_AFTER`] and the first probe, so a request may
/// come in late by the difference, on a machine with much to do, and is still told from a probe.
const RECOVERY: i64 = 1000;
/// Longer than [`KNOWN_AFTER`], so that no process has an excuse for starting a retry of an attempt
/// that failed after the opening.
const BACKOFF: i64 = 250;

/// The target of all flows: down until it is healed. It can keep requests waiting.
#[derive(Default)]
struct Target {
    state: Mutex<TargetState>,
    changed: Condvar,
}

#[derive(Default)]
struct TargetState {
    is_healed: bool,
    /// Whether a request that comes now is kept.
    keeps: bool,
    /// The flows whose requests were kept, in order.
    kept: Vec<String>,
    /// How many of them were let go.
    let_go: usize,
    calls: Vec<Call>,
}

/// A request that was answered.
#[derive(Clone, Debug)]
struct Call {
    flow: String,
    came: i64,
    answered: i64,
}

impl Target {
    fn reply(&self, request: &Request) -> Reply {
        let mut state = self.state.lock().unwrap();
        if state.keeps {
            state.kept.push(flow_of(request));
            let place = state.kept.len();
            while state.let_go < place {
                state = self.changed.wait(state).unwrap();
            }
        }
        state.calls.push(Call {
            flow: flow_of(request),
            came: instant(request.at),
            answered: instant(SystemTime::now()),
        });
        if state.is_healed { Reply::outputs(&json!({"x": 1})) } else { Reply::status(503) }
    }

    /// Keeps the next requests, until so many have come: the flow of the last one.
    fn keep(&self, many: usize, send: impl FnOnce()) -> String {
        let mut state = self.state.lock().unwrap();
        let wanted = state.kept.len() + many;
        state.keeps = true;
        drop(state);
        send();
        World::eventually("a request that is kept", || {
            let mut state = self.state.lock().unwrap();
            let last = state.kept.get(wanted - 1).cloned()?;
            state.keeps = false;
            Some(last)
        })
    }

    /// Answers what is kept.
    fn let_go(&self) {
        let mut state = self.state.lock().unwrap();
        state.let_go = state.kept.len();
        self.changed.notify_all();
    }

    fn heal(&self) {
        self.state.lock().unwrap().is_healed = true;
    }

    /// Everything that came, in order.
    fn calls(&self) -> Vec<Call> {
        let mut calls = self.state.lock().unwrap().calls.clone();
        calls.sort_by_key(|call| call.came);
        calls
    }
}

fn flow_of(request: &Request) -> String {
    text(&request.json()["metadata"]["flow_id"])
}

fn flow(server: usize, number: usize) -> String {
    format!("f{server}-{number}")
}

/// The server at which a flow was begun.
fn server_of(flow: &str) -> usize {
    flow[1..].split('-').next().unwrap().parse().unwrap()
}

/// An instant on the scale of [`millis`].
fn instant(at: SystemTime) -> i64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap().as_millis();
    millis(&json!("1970-01-01T00:00:00.000Z")) + i64::try_from(since).unwrap()
}

/// Begins all flows of these servers but the first of each, at all servers at once.
fn begin_the_others(servers: &[Served], first: usize) {
    thread::scope(|scope| {
        for (server, served) in (first..).zip(servers) {
            scope.spawn(move || {
                for number in 1..FLOWS_EACH {
                    served.begin(&flow(server, number), "a", &json!({}));
                }
            });
        }
    });
}

/// The process that probes is killed with its probe under way, and once more in a later probe,
/// whichever process makes that one. Says when.
fn kill_in_probes(world: &World, servers: &mut Vec<Served>, target: &Target, breaker: &str) -> Vec<i64> {
    let mut victim = None;
    let mut kills = Vec::new();
    for _ in 0..KILLS {
        let probing = target.keep(1, || {});
        let victim = *victim.get_or_insert_with(|| server_of(&probing));
        kills.push(instant(SystemTime::now()));
        servers.remove(victim).kill();
        target.let_go();
        servers.insert(victim, Served::on(world));
        let before = changes(&world.breaker(breaker), "opened");
        world.wait_for_breaker(breaker, |shown| changes(shown, "opened") > before);
    }
    kills
}

/// An attempt as the journal of its job has it.
#[derive(Debug)]
struct Attempt {
    flow: String,
    is_probe: bool,
    started: i64,
    ended: i64,
    cause: String,
}

/// The attempts of a flow, which has completed with exactly one success and whose attempts are
/// numbered one by one.
fn attempts_of(world: &World, flow: &str) -> Vec<Attempt> {
    let events = world.events_of(flow);
    is_lawful(&events);
    assert_eq!(kind(events.last().unwrap()), "job_completed", "{flow}");
    assert_eq!(all(&events, "item_succeeded").len(), 1, "{flow}");
    let outcomes = outcomes(&events);
    let succeeded = outcomes.iter().filter(|it| *it == "success").count();
    assert_eq!(succeeded, 1, "{flow}: {outcomes:?}");
    let started = all(&events, "attempt_started");
    let highest = started.iter().map(|event| event["attempt"].as_u64());
    assert_eq!(highest.max().flatten(), u64::try_from(started.len()).ok(), "{flow}");
    // A flow has one item, whose attempts follow each other.
    let ended = events.iter().filter(|event| ["attempt_succeeded", "attempt_failed"].contains(&kind(event)));
    let pairs = started.iter().zip(ended).zip(outcomes);
    let attempts = pairs.map(|((start, end), cause)| Attempt {
        flow: flow.to_owned(),
        is_probe: start["probe"].as_bool().unwrap(),
        started: millis(&start["at"]),
        ended: millis(&end["at"]),
        cause,
    });
    attempts.collect()
}

/// When something happened to a breaker.
fn instants(breaker: &Value, word: &str) -> Vec<i64> {
    let history = breaker["history"].as_array().unwrap().iter();
    let found = history.filter(|change| change["change"] == word);
    found.map(|change| millis(&change["at"])).collect()
}

/// In the journal of the breaker every probe has ended before the next one starts.
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

/// In the journals of the jobs, too: a probe has ended, or was given up, before the next one starts.
fn probes_never_overlap(attempts: &[Attempt], breaker: &Value) {
    let lost = instants(breaker, "probe_lost");
    let mut probing: Vec<&Attempt> = attempts.iter().filter(|it| it.is_probe).collect();
    probing.sort_by_key(|it| it.started);
    for pair in probing.windows(2) {
        let (one, next) = (pair[0], pair[1]);
        let given_up = lost.iter().copied().find(|at| *at >= one.started);
        let end = given_up.map_or(one.ended, |at| at.min(one.ended));
        assert!(end <= next.started, "{one:?} {next:?} {breaker:#}");
    }
}

/// What the step server saw: every attempt, and of those that a kill has interrupted perhaps; between
/// the first probe and the closing one request at a time, all of them probes.
fn calls_are_the_attempts(calls: &[Call], attempts: &[Attempt], (opened, closed): (i64, i64), kills: &[i64]) {
    for server in 0..SERVERS {
        for number in 0..FLOWS_EACH {
            let flow = flow(server, number);
            let seen = calls.iter().filter(|it| it.flow == flow).count();
            let own = attempts.iter().filter(|it| it.flow == flow);
            let (started, interrupted) = counted(own);
            assert!(
                (started - interrupted..=started).contains(&seen),
                "{flow}: {seen} requests, {started} attempts"
            );
        }
    }
    let (probed, interrupted) = counted(attempts.iter().filter(|it| it.is_probe));
    let held = opened + RECOVERY..closed;
    let held = calls.iter().filter(|it| held.contains(&it.came));
    let held: Vec<&Call> = held.collect();
    assert!(
        (probed - interrupted..=probed).contains(&held.len()),
        "{} requests, {probed} probes",
        held.len()
    );
    for pair in held.windows(2) {
        let (one, next) = (pair[0], pair[1]);
        // It may have been sent by the process that was killed.
        let killed = kills.iter().copied().find(|at| *at >= one.came);
        let end = killed.map_or(one.answered, |at| at.min(one.answered));
        assert!(end <= next.came, "{one:?} {next:?}");
    }
}

/// How many attempts there are, and how many of them were interrupted.
fn counted<'a>(attempts: impl Iterator<Item = &'a Attempt>) -> (usize, usize) {
    let causes: Vec<&str> = attempts.map(|it| it.cause.as_str()).collect();
    let interrupted = causes.iter().filter(|it| **it == "interrupted").count();
    (causes.len(), interrupted)
}

/// Waiting for a breaker uses no attempt.
fn attempts_are_bounded(attempts: &[Attempt], breaker: &Value, (opened, closed): (i64, i64)) {
    let others = attempts.iter().filter(|it| !it.is_probe);
    let (after, before): (Vec<&Attempt>, Vec<&Attempt>) = others.partition(|it| it.started >= closed);
    let late = before.iter().map(|it| it.started - opened).max().unwrap();
    let probed = probes(breaker, None);
    println!(
        "latest start {late} ms after the opening; {} attempts that are no probes before the closing, \
         {probed} probes ({} lost), {} attempts",
        before.len(),
        changes(breaker, "probe_lost"),
        attempts.len(),
    );
    assert!(late <= KNOWN_AFTER, "{late} ms after {breaker:#}");
    // All flows of servers 2 and 3 but the first were begun when every process knew of the opening:
    // they only wait. Each other flow starts at most one attempt that fails after the opening, because
    // its retry would be due later than `KNOWN_AFTER`. An attempt that failed before the opening may
    // have been retried, but there are only as many of those as it takes to open the breaker.
    let begun = FLOWS - 2 * (FLOWS_EACH - 1);
    let bound = begun + FAILURE_THRESHOLD;
    assert!(before.len() <= bound, "{} of {bound}", before.len());
    let waited = |it: &&&Attempt| server_of(&it.flow) >= 2 && !it.flow.ends_with("-0");
    assert_eq!(before.iter().filter(waited).count(), 0);
    // The outage is over when the breaker closes: the first attempt of each flow since then is its last.
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
    let world = World::new();
    let target = Arc::new(Target::default());
    let of_calls = Arc::clone(&target);
    let handlers = StepServer::start().by("/a", move |request| of_calls.reply(request));
    let mut servers: Vec<Served> = (0..SERVERS).map(|_| Served::on(&world)).collect();
    let work = json!({"max_retries": 30, "backoff": BACKOFF, "backoff_type": "fixed"});
    let mut step = giver(&handlers, "a", &work);
    step["breaker"] = json!({
        "failure_threshold": FAILURE_THRESHOLD, "recovery_timeout": "1s",
        "half_open_max_calls": HALF_OPEN_MAX_CALLS,
    });
    servers[0].register(&step);
    let name = handlers.origin();

    // Every process has an attempt under way that the closed breaker has let through, and would go on
    // with others if it did not look again.
    target.keep(SERVERS, || {
        for (server, served) in servers.iter().enumerate() {
            served.begin(&flow(server, 0), "a", &json!({}));
        }
    });
    begin_the_others(&servers[..2], 0);
    let breaker = world.wait_for_breaker(&name, |shown| shown["state"] == "open");
    let opened = instants(&breaker, "opened")[0];
    World::eventually("processes that know of the opening", || {
        (instant(SystemTime::now()) > opened + KNOWN_AFTER).then_some(())
    });
    begin_the_others(&servers[2..], 2);
    target.let_go();
    let kills = kill_in_probes(&world, &mut servers, &target, &name);
    target.heal();
    World::eventually("the end of all flows", || {
        let query = json!({"statuses": ["completed"], "limit": 1});
        let found = servers[0].post("/engine/flow/query", &query).is(200);
        (found["total"] == FLOWS).then_some(())
    });

    let breaker = world.breaker(&name);
    assert_eq!(breaker["state"], "closed");
    assert_eq!(changes(&breaker, "closed"), 1, "{breaker:#}");
    let span = (opened, instants(&breaker, "closed")[0]);
    let flows = (0..SERVERS).flat_map(|server| (0..FLOWS_EACH).map(move |n| flow(server, n)));
    let attempts: Vec<Attempt> = flows.flat_map(|flow| attempts_of(&world, &flow)).collect();
    probes_alternate(&breaker);
    probes_never_overlap(&attempts, &breaker);
    attempts_are_bounded(&attempts, &breaker, span);
    calls_are_the_attempts(&target.calls(), &attempts, span, &kills);
}
