//! Results that come later: early, repeated, late, wrong, broken, lost.

use std::sync::Arc;
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::client::webhook;
use crate::history::{all, is_lawful, one, outcomes};
use crate::http_server::{Reply, Request, StepServer};
use crate::served::{Served, giver, only, says};
use crate::world::World;

/// A step that answers later.
pub(crate) fn later(handlers: &StepServer, id: &str, work: &Value) -> Value {
    let mut step = giver(handlers, id, work);
    step["type"] = json!("async");
    step
}

/// What a step answers that has taken a call on.
pub(crate) fn taken_on() -> Reply {
    Reply::text(200, r#"{"success":true}"#)
}

pub(crate) fn done(outputs: &Value) -> Vec<u8> {
    json!({"success": true, "outputs": outputs}).to_string().into_bytes()
}

/// Where the result of a call is to be sent.
pub(crate) fn url(call: &Request) -> String {
    call.json()["metadata"]["webhook_url"].as_str().unwrap().to_owned()
}

/// A flow whose result is waited for, and where that is to be sent.
fn waiting() -> (World, StepServer, Served, String) {
    let world = World::new();
    let handlers = StepServer::start().on("/a", &[taken_on()]);
    let served = Served::on(&world);
    served.register(&later(&handlers, "a", &json!({"max_retries": 2, "backoff": 1})));
    served.begin("f", "a", &json!({}));
    let url = url(&handlers.wait_for("/a", 1)[0]);
    let events = World::eventually("an accepted call", || {
        let events = world.events_of("f");
        (!all(&events, "attempt_accepted").is_empty()).then_some(events)
    });
    assert_eq!(all(&events, "attempt_started").len(), 1);
    (world, handlers, served, url)
}

#[test]
fn a_result_is_taken_once_and_answered_200_however_often_it_comes() {
    let (world, handlers, served, url) = waiting();
    let token = handlers.all()[0].token().to_owned();
    assert_eq!(url, format!("http://{}/webhook/f/a/{token}", served.address()));
    let flow = served.flow("f");
    assert_eq!(only(&flow, "a").unwrap()["status"], "active");
    assert_eq!(webhook(&url, &done(&json!({"x": 1, "more": 2}))).unwrap().is(200), json!({"success": true}));
    // Again, while it goes on and when it is over, also with something else.
    webhook(&url, &done(&json!({"x": 1}))).unwrap().is(200);
    let flow = served.ends("f", "completed");
    assert_eq!(flow["attributes"]["x"]["value"], 1);
    for other in [done(&json!({"x": 9})), json!({"success": false, "error": "late"}).to_string().into_bytes()]
    {
        webhook(&url, &other).unwrap().is(200);
    }
    served.deactivated("f");
    webhook(&url, &done(&json!({"x": 9}))).unwrap().is(200);
    assert_eq!(served.flow("f"), flow);
    let events = world.events_of("f");
    is_lawful(&events);
    assert_eq!(outcomes(&events), ["success"]);
}

#[test]
fn what_is_no_result_of_a_step_is_refused_and_changes_nothing() {
    let (world, _server, served, url) = waiting();
    let before = served.flow("f");
    let (base, token) = url.rsplit_once('/').unwrap();
    let origin = url.strip_suffix(&format!("/webhook/f/a/{token}")).unwrap();
    let body = done(&json!({"x": 1}));
    for wrong in [
        format!("{base}/{token}0"),
        format!("{base}/00000000-0000-0000-0000-000000000000"),
        format!("{base}/%00"),
        format!("{origin}/webhook/f/b/{token}"),
        format!("{origin}/webhook/g/a/{token}"),
        format!("{origin}/webhook/F/a/{token}"),
    ] {
        webhook(&wrong, &body).unwrap().refused(404);
    }
    for garbage in
        ["", "{", "null", "[]", "7", "{}", r#"{"success":"yes"}"#, r#"{"success":true,"outputs":[1]}"#]
    {
        let answer = webhook(&url, garbage.as_bytes()).unwrap();
        assert_eq!(answer.status, 400, "{garbage}: {}", answer.text());
        answer.refused(400);
    }
    webhook(&url, &[0xff, 0xfe, 0]).unwrap().refused(400);
    let huge = done(&json!({"x": "x".repeat(17 << 20)}));
    // It may be cut off before it is sent whole.
    if let Some(answer) = webhook(&url, &huge) {
        answer.refused(413);
    }
    assert_eq!(served.flow("f"), before);
    let large = "y".repeat(3 << 20);
    webhook(&url, &done(&json!({"x": large}))).unwrap().is(200);
    let flow = served.ends("f", "completed");
    assert_eq!(flow["attributes"]["x"]["value"], json!(large));
    assert_eq!(outcomes(&world.events_of("f")), ["success"]);
}

#[test]
fn a_result_that_is_there_before_the_call_was_answered_counts() {
    let world = World::new();
    let answers = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&answers);
    let handlers = StepServer::start().by("/a", move |request| {
        let answer = webhook(&url(request), &done(&json!({"x": 3}))).unwrap();
        heard.lock().unwrap().push(answer.status);
        taken_on()
    });
    let served = Served::on(&world);
    served.register(&later(&handlers, "a", &json!({"max_retries": 2, "backoff": 1})));
    for id in ["f", "g", "h"] {
        served.begin(id, "a", &json!({}));
        let flow = served.ends(id, "completed");
        assert_eq!(flow["attributes"]["x"]["value"], 3);
        assert_eq!(outcomes(&world.events_of(id)), ["success"]);
    }
    assert_eq!(*answers.lock().unwrap(), [200; 3]);
    assert_eq!(handlers.all().len(), 3);
}

#[test]
fn a_failing_result_is_final_and_a_lost_one_is_asked_for_again_with_the_same_token() {
    let (_world, _server, served, url) = waiting();
    let failing = json!({"success": false, "error": "no room"}).to_string();
    webhook(&url, failing.as_bytes()).unwrap().is(200);
    let flow = served.ends("f", "failed");
    says(&flow["error"], "no room");
    webhook(&url, &done(&json!({"x": 1}))).unwrap().is(200);
    assert_eq!(served.flow("f"), flow);

    let world = World::new();
    let handlers = StepServer::start().on("/a", &[taken_on()]);
    let served = Served::on(&world);
    let mut step = later(&handlers, "a", &json!({"max_retries": 1, "backoff": 1}));
    step["http"]["completion_timeout"] = json!(300);
    served.register(&step);
    served.begin("lost", "a", &json!({}));
    let calls = handlers.wait_for("/a", 2);
    assert_eq!(calls[0].token(), calls[1].token());
    assert_eq!(self::url(&calls[0]), self::url(&calls[1]));
    // The result of the first call is as good as that of the second.
    World::eventually("a result that is taken", || {
        webhook(&self::url(&calls[0]), &done(&json!({"x": 4}))).filter(|answer| answer.status == 200)
    });
    served.until("lost", "its end", |flow| flow["status"] != "active");
    let events = world.events_of("lost");
    is_lawful(&events);
    assert_eq!(outcomes(&events)[0], "timeout");
    let scheduled = one(&events, "retry_scheduled");
    assert_eq!(scheduled["retry"], 1);

    // Nobody ever answers: the attempts are used up, and it fails.
    served.begin("silent", "a", &json!({}));
    let flow = served.ends("silent", "failed");
    assert_eq!(only(&flow, "a").unwrap()["retry_count"], 1);
    assert_eq!(outcomes(&world.events_of("silent")), ["timeout", "timeout"]);
}

#[test]
fn a_result_that_comes_while_the_next_call_is_waited_for_is_to_be_sent_again() {
    let world = World::new();
    let handlers = StepServer::start().on("/a", &[Reply::status(503), taken_on()]);
    let served = Served::on(&world);
    let work = json!({"max_retries": 1, "backoff": 1000, "backoff_type": "fixed"});
    served.register(&later(&handlers, "a", &work));
    served.begin("f", "a", &json!({}));
    served.item("f", "a", |item| item["retry_count"] == 1);
    let told = url(&handlers.requests("/a")[0]);
    webhook(&told, &done(&json!({"x": 1}))).unwrap().refused(503);
    assert_eq!(handlers.wait_for("/a", 2)[1].token(), handlers.all()[0].token());
    World::eventually("a result that is taken", || {
        webhook(&told, &done(&json!({"x": 2}))).filter(|answer| answer.status == 200)
    });
    let flow = served.ends("f", "completed");
    assert_eq!(flow["attributes"]["x"]["value"], 2);
    assert_eq!(outcomes(&world.events_of("f")), ["status", "success"]);
}
