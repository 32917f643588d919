//! Results that come later, when somebody is killed, cancels or presses Ctrl-C meanwhile.

use serde_json::json;

use crate::history::{all, is_lawful, one, outcomes};
use crate::http::is_exact;
use crate::http_server::{Reply, StepServer};
use crate::webhooks::{ANYWHERE, address, deliver, done, post, run, taken_on, url, usual};
use crate::world::World;

#[test]
fn a_flow_killed_while_a_result_is_waited_for_goes_on_waiting_and_does_not_call_again() {
    let (server, world) = usual();
    let own = address();
    let variables = [("UNDAUNTED_LISTEN", own.as_str())];
    let mut engine = world.spawn_with(&["run", "w.yaml", "--json"], &variables);
    let until = world.event("attempt_accepted")["until"].clone();
    let told = url(&server.requests("/a")[0]);
    let body = done(&json!({"x": 5}));
    for resumed in 1..=2 {
        engine.kill();
        // Nobody is there: it has to be sent again.
        assert_eq!(post(&told, body.as_bytes()), None);
        engine = world.spawn_with(&["resume", "@last", "--json"], &variables);
        World::eventually("somebody who listens", || post(&format!("{told}x"), body.as_bytes()));
        world.wait_for_events("that it goes on", |events| all(events, "job_resumed").len() == resumed);
    }
    assert_eq!(post(&told, body.as_bytes()).unwrap().0, 200);
    let report = engine.wait().exits(0).json();
    assert_eq!((&report["attempts"], &report["retries"]), (&json!(2), &json!(0)));
    let events = world.events();
    is_lawful(&events);
    is_exact(&server, &events);
    assert_eq!(one(&events, "attempt_accepted")["until"], until);
    assert_eq!(all(&events, "job_resumed").len(), 2);
}

#[test]
fn a_result_whose_time_passed_while_nobody_was_there_is_a_timeout() {
    let (server, world) = usual();
    let engine = run(&world);
    world.event("attempt_accepted");
    engine.kill();
    // A day and a minute later.
    let later = ("UNDAUNTED_TEST_CLOCK", "86460000");
    let engine = world.spawn_with(&["resume", "@last", "--json"], &[ANYWHERE, later]);
    server.wait_for("/a", 2);
    deliver(&server, "/a", &json!({"x": 1}));
    engine.wait().exits(0);
    let events = world.events();
    is_lawful(&events);
    assert_eq!(outcomes(&events)[..2], ["timeout", "success"]);
}

#[test]
fn a_result_that_was_answered_200_is_never_lost_wherever_somebody_dies() {
    for place in ["append-before", "append-after"] {
        for number in 3..=9 {
            let (server, world) = usual();
            let own = address();
            let die = format!("{place}:{number}");
            let listen = ("UNDAUNTED_LISTEN", own.as_str());
            let mut engine =
                world.spawn_with(&["run", "w.yaml", "--json"], &[listen, ("UNDAUNTED_TEST_DIE", &die)]);
            let call = World::eventually("a call, or the end", || {
                let call = server.requests("/a").pop();
                (call.is_some() || engine.has_ended()).then_some(call)
            });
            let body = done(&json!({"x": 5}));
            let answer = call.and_then(|call| post(&url(&call), body.as_bytes()));
            engine.wait();
            let taken = answer.is_some_and(|(status, _)| status == 200);
            let engine = world.spawn_with(&["resume", "@last", "--json"], &[listen]);
            if !taken {
                deliver(&server, "/a", &json!({"x": 5}));
            }
            let ended = engine.wait();
            assert_eq!(ended.code, 0, "{die}: {ended:?}");
            let events = world.events();
            is_lawful(&events);
            assert_eq!(all(&events, "attribute_set").len(), 1, "{die}");
        }
    }
}

#[test]
fn a_flow_is_cancelled_while_a_result_is_waited_for() {
    let (server, world) = usual();
    let engine = run(&world);
    world.event("attempt_accepted");
    world.call(&["cancel", "@last"]).exits(0);
    assert_eq!(engine.wait().exits(1).json()["status"], "cancelled");
    is_lawful(&world.events());
    assert_eq!(server.all().len(), 1);
}

#[test]
fn ctrl_c_suspends_a_flow_whose_work_others_have_taken_on_and_nothing_is_lost() {
    let (server, world) = usual();
    let own = address();
    let listen = ("UNDAUNTED_LISTEN", own.as_str());
    let engine = world.spawn_with(&["run", "w.yaml"], &[listen]);
    world.event("attempt_accepted");
    engine.signal("INT");
    engine.wait().exits(75);
    let engine = world.spawn_with(&["resume", "@last", "--json"], &[listen]);
    deliver(&server, "/a", &json!({"x": 1}));
    engine.wait().exits(0);
    assert_eq!(server.requests("/a").len(), 1, "it was called once");
    is_lawful(&world.events());
}

#[test]
fn a_step_that_is_complete_by_its_rule_waits_for_no_more_results() {
    let server = StepServer::start().on("/a", &[taken_on()]);
    let world = World::of(&format!(
        "
mode: flow
goals: [a]
init: {{n: [1, 2]}}
steps:
  - id: a
    type: async
    http: {{endpoint: '{}'}}
    work_config: {{parallelism: 2}}
    attributes: {{n: {{role: required, for_each: true}}}}
    best_effort: true
    best_effort_min_dcs: 1
",
        server.url("/a")
    ));
    let engine = run(&world);
    server.wait_for("/a", 2);
    world.wait_for_events("two taken on", |events| all(events, "attempt_accepted").len() == 2);
    deliver(&server, "/a", &json!({}));
    engine.wait().exits(0);
    is_lawful(&world.events());
}

#[test]
fn a_result_of_a_round_that_is_over_is_answered_200_and_ignored() {
    let (server, world) = usual();
    let engine = run(&world);
    let first = url(&server.wait_for("/a", 1)[0]);
    post(&first, br#"{"success":false,"error":"no"}"#).unwrap();
    engine.wait().exits(1);
    server.answers("/b", &[Reply::outputs(&json!({})).gated()]);
    let own = address();
    let engine =
        world.spawn_with(&["dlq", "redrive", "@last", "--yes", "--json"], &[("UNDAUNTED_LISTEN", &own)]);
    let second = url(&server.wait_for("/a", 2)[1]);
    let (_, path) = first.split_once("/webhook").unwrap();
    let first = format!("http://{own}/webhook{path}");
    assert_ne!(first, second);
    let body = |x: u32| done(&json!({"x": x}));
    assert_eq!(post(&first, body(1).as_bytes()).unwrap().0, 200);
    assert_eq!(post(&second, body(2).as_bytes()).unwrap().0, 200);
    server.wait_for("/b", 1);
    for url in [&first, &second] {
        assert_eq!(post(url, body(3).as_bytes()).unwrap().0, 200);
    }
    server.open("/b");
    engine.wait().exits(0);
    assert_eq!(one(&world.events(), "attribute_set")["value"], 2);
}
