//! Beginning flows: refusals, repetitions, and what is stored of a flow.

use std::collections::BTreeSet;
use std::thread;

use serde_json::{Value, json};
use undaunted_runner::flows::{BeginError, BegunFlow, FlowSubmission, PlanError};

use crate::engine::Engine;
use crate::fixture::{FlowFixture, step, wanted};
use crate::http_server::{Reply, ScriptedServer};

fn ok() -> Reply {
    Reply::outputs(&json!({"y": 1}))
}

/// A store with a step that makes `y` from `x`.
fn make(server: &ScriptedServer, work: &Value) -> FlowFixture {
    let attributes = json!({"x": {"role": "required"}, "y": {"role": "output"}});
    FlowFixture::of(&[step("make", &server.url("/make"), &attributes, work)])
}

fn stored(fixture: &FlowFixture) -> Vec<String> {
    let listed = fixture.store().list("job", "").unwrap();
    let ids = listed.iter().map(|listed| listed.aggregate.id().to_owned());
    ids.collect()
}

#[test]
fn a_goal_that_is_not_registered_is_refused_by_name() {
    let server = ScriptedServer::start().on("/make", &[ok()]);
    let fixture = make(&server, &Value::Null);
    let engine = fixture.engine();
    let mut asked = wanted("a", "make", &json!({"x": 1}));
    asked.goals.push("unregistered".to_owned());
    let error = engine.host().start(&asked).unwrap_err();
    assert!(
        matches!(&error, BeginError::Plan(PlanError::UnknownStep(step)) if step == "unregistered"),
        "{error:?}"
    );
    assert!(error.to_string().contains("`unregistered`"), "{error}");
    assert_eq!(stored(&fixture), Vec::<String>::new());
    assert!(server.all().is_empty());
}

#[test]
fn a_missing_input_is_named_and_nothing_is_begun() {
    let server = ScriptedServer::start().on("/make", &[ok()]);
    let fixture = make(&server, &Value::Null);
    let attributes = json!({"y": {"role": "required"}, "region": {"role": "required"}});
    fixture.register(&step("use", &server.url("/use"), &attributes, &Value::Null));
    let engine = fixture.engine();
    for (goal, init, missing, given) in [
        ("make", json!({}), "`x`", "`y`"),
        ("use", json!({"x": 1}), "`region`", "`x`"),
        ("use", json!({"y": 1}), "`region`", "`x`"),
    ] {
        let error = engine.host().start(&wanted("a", goal, &init)).unwrap_err();
        let words = error.to_string();
        assert!(matches!(error, BeginError::Plan(PlanError::MissingInputs(_))));
        assert!(words.contains(missing), "{words}");
        assert!(!words.contains(given), "{words}");
    }
    assert_eq!(stored(&fixture), Vec::<String>::new());
    assert!(server.all().is_empty());
}

#[test]
fn an_existing_flow_is_not_begun_again_and_a_different_one_of_its_name_is_refused() {
    let server = ScriptedServer::start().on("/make", &[ok().gated()]);
    let fixture = make(&server, &Value::Null);
    fixture.register(&step("other", &server.url("/other"), &json!({}), &Value::Null));
    let engine = fixture.engine();
    let asked = wanted("a", "make", &json!({"x": {"deep": [1, 2.5, null]}}));
    engine.start(&asked);
    let elsewhere = fixture.engine();
    let same_or_not = |engine: &Engine| {
        assert_eq!(engine.host().start(&asked).unwrap(), BegunFlow::Before);
        let mut labelled = asked.clone();
        labelled.labels.insert("k".to_owned(), "v".to_owned());
        assert_eq!(engine.host().start(&labelled).unwrap(), BegunFlow::Before);
        for others in [
            wanted("a", "make", &json!({"x": {"deep": [1, 2.5, 0]}})),
            wanted("a", "make", &json!({"x": 1, "z": 2})),
            wanted("a", "other", &json!({"x": {"deep": [1, 2.5, null]}})),
        ] {
            let error = engine.host().start(&others).unwrap_err();
            assert!(matches!(&error, BeginError::Exists(id) if id == "a"), "{error:?}");
        }
    };
    // While it runs, here and elsewhere, and when it has ended.
    same_or_not(&engine);
    same_or_not(&elsewhere);
    server.open("/make");
    engine.completes("a");
    same_or_not(&engine);
    same_or_not(&elsewhere);
    assert_eq!(server.all().len(), 1);
    assert_eq!(fixture.all("a", "attempt_started").len(), 1);
}

#[test]
fn of_many_concurrent_starts_of_one_flow_exactly_one_begins_it() {
    const FLOWS: usize = 30;
    const WHO: usize = 4;
    let server = ScriptedServer::start().on("/make", &[ok()]);
    let fixture = make(&server, &Value::Null);
    let engines = [fixture.engine(), fixture.engine()];
    for flow in 0..FLOWS {
        let asked = wanted(&format!("f{flow}"), "make", &json!({"x": flow}));
        let begun: Vec<Result<BegunFlow, String>> = thread::scope(|scope| {
            let racing = (0..WHO).map(|who| {
                let (engine, asked) = (&engines[who % 2], &asked);
                scope.spawn(move || {
                    let begun = engine.host().start(asked);
                    begun.map_err(|error| error.to_string())
                })
            });
            let racing: Vec<_> = racing.collect();
            racing.into_iter().map(|it| it.join().unwrap()).collect()
        });
        let now = begun.iter().filter(|it| **it == Ok(BegunFlow::Now)).count();
        let before = begun.iter().filter(|it| **it == Ok(BegunFlow::Before)).count();
        assert_eq!((now, before), (1, WHO - 1), "{begun:?}");
    }
    for flow in 0..FLOWS {
        fixture.ended(&format!("f{flow}"));
    }
    assert_eq!(server.all().len(), FLOWS);
}

#[test]
fn of_many_concurrent_starts_of_different_flows_of_one_name_exactly_one_succeeds() {
    const FLOWS: usize = 30;
    let server = ScriptedServer::start().on("/make", &[ok()]);
    let fixture = make(&server, &Value::Null);
    let engine = fixture.engine();
    for flow in 0..FLOWS {
        let begun: Vec<bool> = thread::scope(|scope| {
            let racing = (0..3).map(|who| {
                let engine = &engine;
                scope.spawn(move || {
                    let asked = wanted(&format!("f{flow}"), "make", &json!({"x": who}));
                    match engine.host().start(&asked) {
                        Ok(BegunFlow::Now) => true,
                        Err(BeginError::Exists(_)) => false,
                        other => panic!("{other:?}"),
                    }
                })
            });
            let racing: Vec<_> = racing.collect();
            racing.into_iter().map(|it| it.join().unwrap()).collect()
        });
        assert_eq!(begun.iter().filter(|it| **it).count(), 1, "{begun:?}");
        let flow = format!("f{flow}");
        engine.completes(&flow);
        // The flow is the one that was begun successfully.
        let winner = begun.iter().position(|it| *it).unwrap();
        let init = fixture.job(&flow).submitted().flow.clone().unwrap().init;
        assert_eq!(init, json!({"x": winner}).to_string());
    }
    assert_eq!(server.all().len(), FLOWS);
}

#[test]
fn goals_init_labels_and_budgets_are_stored_with_the_flow() {
    let server = ScriptedServer::start().on("/make", &[ok()]);
    let fixture = make(&server, &Value::Null);
    let engine = fixture.engine();
    let labels = [("team", "blue"), ("tier", "1")];
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
    for (id, budget, per_item, pool) in [
        ("none", None, None, None),
        ("both", Some(7), Some(2), Some((7, 2))),
        ("defaults", Some(0), Some(0), Some((20, 3))),
        ("ceilings", Some(1000), Some(9), Some((50, 5))),
        ("one", Some(2), None, Some((2, 2))),
        ("other", None, Some(4), Some((20, 4))),
    ] {
        let asked = FlowSubmission {
            labels: labels.clone().into(),
            retry_budget: budget,
            retry_budget_per_workflow: per_item,
            ..wanted(id, "make", &json!({"x": [1]}))
        };
        engine.start(&asked);
        engine.completes(id);
        let job = fixture.job(id);
        assert_eq!(job.submitted().pool, pool, "{id}");
        let run = job.submitted().flow.clone().unwrap();
        assert_eq!(run.goals, ["make"]);
        assert_eq!(run.init, r#"{"x":[1]}"#);
        assert_eq!(run.labels, labels);
        assert_eq!(run.parent, None);
        assert!(job.submitted().token_key.is_some());
        let known = fixture.catalog.read(|catalog| catalog.flows[id].labels.clone());
        assert_eq!(known.unwrap(), labels.clone().into());
    }
}

#[test]
fn the_retry_budget_of_a_flow_is_enforced() {
    let server = ScriptedServer::start().on("/make", &[Reply::status(503)]);
    let work = json!({"max_retries": 10, "backoff": 1});
    let fixture = make(&server, &work);
    let engine = fixture.engine();
    let asked = FlowSubmission { retry_budget: Some(2), ..wanted("a", "make", &json!({"x": 1})) };
    engine.start(&asked);
    engine.left("a").unwrap();
    assert_eq!(server.all().len(), 3);
    let stopped = fixture.all("a", "command_stopped");
    assert_eq!(stopped[0]["reason"], "job_budget_exhausted", "{stopped:?}");
}

#[test]
fn flows_of_one_name_in_two_stores_have_different_tokens() {
    let server = ScriptedServer::start().on("/make", &[Reply::status(503), ok()]);
    let fixtures = [0, 1].map(|_| make(&server, &json!({"max_retries": 3, "backoff": 1})));
    let mut tokens = Vec::new();
    for fixture in &fixtures {
        server.answers("/make", &[Reply::status(503), ok()]);
        let engine = fixture.engine();
        engine.start(&wanted("a", "make", &json!({"x": 1})));
        engine.completes("a");
        let sent = server.requests("/make").split_off(tokens.len());
        tokens.extend(sent.iter().map(|sent| sent.token().to_owned()));
    }
    // The attempts of an item share theirs.
    assert_eq!(tokens.len(), 4);
    assert_eq!(tokens[0], tokens[1]);
    assert_eq!(tokens[2], tokens[3]);
    let different: BTreeSet<&String> = tokens.iter().collect();
    assert_eq!(different.len(), 2);
    let keys = fixtures.map(|fixture| fixture.job("a").submitted().token_key);
    assert!(keys[0].is_some() && keys[0] != keys[1], "{keys:?}");
}

#[test]
fn a_provider_whose_inputs_cannot_appear_does_not_keep_a_flow_from_starting() {
    let fine = Reply::outputs(&json!({"x": 1}));
    let server = ScriptedServer::start().on("/works", &[fine]).on("/goal", &[ok()]);
    let gives = json!({"x": {"role": "output"}});
    let lacks = json!({"q": {"role": "required"}, "x": {"role": "output"}});
    let fixture = FlowFixture::of(&[
        step("goal", &server.url("/goal"), &json!({"x": {"role": "required"}}), &Value::Null),
        step("lacks", &server.url("/lacks"), &lacks, &Value::Null),
        step("works", &server.url("/works"), &gives, &Value::Null),
    ]);
    let engine = fixture.engine();
    engine.start(&wanted("a", "goal", &json!({})));
    engine.completes("a");
    assert!(server.requests("/lacks").is_empty());
    // With the input, both are called.
    server.answers("/works", &[Reply::outputs(&json!({"x": 1}))]);
    server.answers("/lacks", &[Reply::outputs(&json!({"x": 2}))]);
    engine.start(&wanted("b", "goal", &json!({"q": 0})));
    engine.completes("b");
    assert_eq!(server.requests("/lacks").len(), 1);
    // A goal that cannot be reached names what it lacks.
    let why = engine.host().start(&wanted("c", "lacks", &json!({}))).unwrap_err();
    assert!(why.to_string().contains("`q`"), "{why}");
}
