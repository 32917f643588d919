//! A registered step is checked once, however often it is registered and however many flows need it.

use serde_json::{Value, json};
use undaunted_engine::workflow::{checks_made, plain_definition};
use undaunted_runner::flows::BegunFlow;

use crate::fixture::{FlowFixture, step, wanted};
use crate::http_server::{Reply, ScriptedServer};

#[test]
fn steps_are_checked_when_registered_and_not_for_each_flow() {
    let fine = Reply::outputs(&json!({"y": 1, "z": 1}));
    let server = ScriptedServer::start();
    let server = server.on("/first", std::slice::from_ref(&fine)).on("/last", std::slice::from_ref(&fine));
    let first = json!({"x": {"role": "required", "for_each": true}, "y": {"role": "output"}});
    let last = json!({"y": {"role": "required"}, "z": {"role": "output"}});
    let fixture = FlowFixture::of(&[]);
    let engine = fixture.engine();
    let steps = [
        step("first", &server.url("/first"), &first, &Value::Null),
        step("last", &server.url("/last"), &last, &Value::Null),
        json!({
            "id": "outer", "type": "flow", "flow": {"goals": ["first"]},
            "attributes": {"x": {"role": "required"}, "y": {"role": "output"}},
        }),
    ];
    let before = checks_made();
    let made = || checks_made() - before;
    for step in &steps {
        let definition = plain_definition(step);
        engine.host().check_step(&definition).unwrap();
        fixture.register(step);
        engine.host().check_step(&definition).unwrap();
    }
    assert_eq!(made(), 3);
    for number in 0..10 {
        let goal = if number % 2 == 0 { "first" } else { "outer" };
        let flow = wanted(&format!("flow-{number}"), goal, &json!({"x": [number]}));
        engine.start(&flow);
    }
    for number in 0..10 {
        engine.completes(&format!("flow-{number}"));
    }
    // Starting a flow again uses the same plan.
    let again = engine.host().start(&wanted("flow-3", "outer", &json!({"x": [3]})));
    assert_eq!(again.unwrap(), BegunFlow::Before);
    assert_eq!(made(), 3);

    // Settings of a flow for its steps make new definitions, which are checked once as well.
    for flow in ["best", "again"] {
        let mut asked = wanted(flow, "last", &json!({"x": [1, 2]}));
        let _ = asked.of_steps.insert("best_effort".to_owned(), true.into());
        engine.start(&asked);
        engine.completes(flow);
    }
    assert_eq!(made(), 4);
}
