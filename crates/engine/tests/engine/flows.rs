//! Flows: planned backwards from their goals, connected by attributes.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use undaunted_engine::event::{Event, StepEvent};
use undaunted_engine::id::StepId;
use undaunted_engine::workflow::{Operator, Source, check};
use undaunted_policy::{FailureCause, Reason};

use crate::fixture::{ONCE, TestedJob, flow, flow_text, item_at};

/// The diagnostics of a text that is refused.
fn refused(text: &str) -> String {
    let checked = check(&Source::new("f.yaml", text), &Operator::default());
    assert!(checked.workflow.is_none(), "{text}");
    let found = checked.diagnostics.iter();
    found.map(|found| found.message.clone()).collect::<Vec<_>>().join("\n")
}

#[test]
fn steps_begin_when_their_inputs_are_set_and_only_if_they_lead_to_a_goal() {
    let mut test = flow(
        "last",
        "x: 1",
        &[
            ("last", "b: {role: required}, c: {role: required}", ONCE),
            ("other", "x: {role: required}, d: {role: output}", ONCE),
            ("middle", "a: {role: required}, b: {role: output}", ONCE),
            ("first", "x: {role: required}, a: {role: output}, c: {role: output}", ONCE),
        ],
    );
    assert_eq!(test.start().lines(), ["attempt_started 3/0 3.1 as 1"]);
    let records = test.succeed_item(StepId(3).item(0), &json!({"a": 1, "c": 3})).lines();
    assert_eq!(
        records[1..],
        [
            "item_succeeded 3/0",
            "attribute_set",
            "attribute_set",
            "step_completed 3",
            "step_started 2",
            "items_read 2: 1",
        ]
    );
    test.start().succeed_item(StepId(2).item(0), &json!({"b": [2]})).start();
    assert_eq!(test.arguments(item_at(0)), json!({"b": [2], "c": 3}));
    assert_eq!(test.succeed_item(item_at(0), &json!({})).lines().last().unwrap(), "job_completed");
    assert_eq!(test.outcome(), ("completed", None, [3, 0, 0]));
}

#[test]
fn an_attribute_keeps_its_first_value_and_a_later_one_is_recorded() {
    let mut test = flow(
        "a, b, c",
        "given: 0",
        &[
            ("a", "x: {role: output}, given: {role: output}", ONCE),
            ("b", "x: {role: output}", ONCE),
            ("c", "x: {role: required}, given: {role: required}", ONCE),
        ],
    );
    test.start();
    test.succeed_item(StepId(1).item(0), &json!({"x": 1}));
    test.start();
    assert_eq!(test.arguments(StepId(2).item(0)), json!({"x": 1, "given": 0}), "init comes first");
    test.succeed_item(item_at(0), &json!({"x": 2, "given": 3}));
    let recorded = test.records().into_iter().filter_map(|record| match record.event {
        Event::Step(StepEvent::AttributeSet { name, value, unused, .. }) => Some((name, value, unused)),
        _ => None,
    });
    let unused = |name: &str, value: &str| (name.to_owned(), value.to_owned(), Some(true));
    assert_eq!(recorded.collect::<Vec<_>>(), [unused("given", "3"), unused("x", "2")]);
    test.succeed_item(StepId(2).item(0), &json!({}));
    assert_eq!((test.attribute("x"), test.attribute("given")), (json!(1), json!(0)));
    assert_eq!(test.outcome(), ("completed", None, [3, 0, 0]));
    test.check_replay();
}

#[test]
fn independent_steps_run_in_parallel() {
    let mut test = flow("a, b", "", &[("a", "x: {role: output}", ONCE), ("b", "y: {role: output}", ONCE)]);
    assert_eq!(test.start().records().len(), 2);
    assert_eq!(test.succeed_item(StepId(1).item(0), &json!({})).outcome().0, "running");
    assert_eq!(test.succeed_item(item_at(0), &json!({})).outcome(), ("completed", None, [2, 0, 0]));
}

#[test]
fn a_flow_that_cannot_be_planned_is_refused() {
    let needs = ("a", "x: {role: required}", "");
    let cycle = [
        ("a", "x: {role: required}, y: {role: output}", ""),
        ("b", "y: {role: required}, x: {role: output}", ""),
    ];
    for (text, message) in [
        (flow_text("a", "", &[needs]), "needs `x`, which no step provides"),
        (flow_text("unknown", "x: 1", &[needs]), "step `unknown` not found"),
        (flow_text("", "x: 1", &[needs]), "a flow needs at least one goal"),
        (flow_text("a", "", &cycle), "wait for each other"),
        (flow_text("a", "x: 1", &[needs, needs]), "two steps"),
        (flow_text("a", "", &[("a", "x: {role: const}", "")]), "has no value"),
        (
            flow_text("a", "", &[("a", "x: {role: output, for_each: true}", "")]),
            "an output cannot have `for_each`",
        ),
        (flow_text("a", "", &[("a", "x: {role: optional, default: 'hi'}", "")]), "is not valid JSON"),
        (flow_text("a", "", &[("a", "x: {role: required, default: '1'}", "")]), "its role is `required`"),
        (flow_text("a", "", &[("a", "x: {role: output, default: '1'}", "")]), "its role is `output`"),
        (
            flow_text("a", "x: b", &[("a", "x: {role: required, type: string, for_each: true}", "")]),
            "`for_each` needs an array, and the type of `x` is `string`",
        ),
        (flow_text("a", "", &[("a", "'': {role: output}", "")]), "the name of an attribute cannot be empty"),
        (flow_text("a", "", &[("a", "x: {role: output, mapping: {name: ''}}", "")]), "cannot be empty"),
        (flow_text("''", "", &[("''", "", "")]), "a name cannot be empty"),
        (flow_text("a", "", &[("a", "", ", name: ''")]), "a name cannot be empty"),
        (
            flow_text("a", "", &[("a", "", "")]).replace("http://s/a", "http://s/{x}"),
            "not an input of the step",
        ),
        (flow_text("a", "x: 1", &[needs]).replace("http://s/a", "http://{x}/a"), "`{x}` is part of the host"),
        (flow_text("a", "", &[("a", "", ", predicate: {script: 'x >'}")]), "not valid CEL"),
        (flow_text("a", "", &[("a", "", ", predicate: {language: lua, script: x}")]), "lua"),
        (flow_text("a", "", &[("a", "", ", memoizable: true")]), "memoizable"),
        (flow_text("a", "", &[("a", "", "")]).replace("sync", "script"), "script"),
    ] {
        let found = refused(&text);
        assert!(found.contains(message), "{found}\n{text}");
    }
    // `init` breaks a cycle, and a default replaces an attribute that no step sets.
    assert!(!TestedJob::of(&flow_text("a", "x: 1", &cycle)).ready().is_empty());
    let default = [("a", "x: {role: optional, default: '5'}", "")];
    assert_eq!(flow("a", "", &default).arguments(item_at(0)), json!({"x": 5}));
}

#[test]
fn a_provider_whose_inputs_cannot_appear_is_left_out_of_the_plan() {
    let goal = ("goal", "x: {role: required}", ONCE);
    let works = ("works", "x: {role: output}", ONCE);
    // Two lack an input, and two wait for each other.
    let lacks = ("lacks", "q: {role: required}, x: {role: output}", ONCE);
    let own = ("own", "s: {role: required}, x: {role: output}", ONCE);
    let one = ("one", "b: {role: required}, c: {role: output}, x: {role: output}", ONCE);
    let other = ("other", "c: {role: required}, b: {role: output}", ONCE);
    let text = flow_text("goal", "", &[lacks, goal, one, other, own, works]);
    let checked = check(&Source::new("f.yaml", text.as_str()), &Operator::default());
    let warnings: Vec<String> = checked.diagnostics.iter().map(|found| found.message.clone()).collect();
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert!(warnings[0].contains("step `lacks` is never run: it needs `q`"), "{warnings:?}");
    let mut test = TestedJob::of(&text);
    let excluded = &test.job.workflow().flow.as_ref().unwrap().excluded;
    let expected = [(0, "q"), (2, "b"), (4, "s")].map(|(step, missing)| (step, vec![missing.to_owned()]));
    assert_eq!(*excluded, BTreeMap::from(expected));
    assert_eq!(test.ready(), [StepId(5).item(0)]);
    test.start().succeed_item(StepId(5).item(0), &json!({"x": 1})).start();
    assert_eq!(test.arguments(StepId(1).item(0)), json!({"x": 1}));
    test.succeed_item(StepId(1).item(0), &json!({}));
    assert_eq!(test.outcome(), ("completed", None, [2, 0, 0]));
    // Without any other provider the goal lacks the input.
    assert!(refused(&flow_text("goal", "", &[lacks, goal])).contains("step `lacks` needs `q`"));
    assert!(refused(&flow_text("goal", "", &[goal, one, other])).contains("wait for each other"));
    // A provider of an optional input is left out as well.
    let takes = ("goal", "x: {role: optional, default: '4'}", ONCE);
    let mut test = TestedJob::of(&flow_text("goal", "", &[lacks, takes]));
    test.start();
    assert_eq!(test.arguments(StepId(1).item(0)), json!({"x": 4}));
}

#[test]
fn arguments_are_attributes_defaults_or_constants_under_their_mapped_names() {
    let test = flow(
        "a",
        "known: {deep: [1, null]}, given: over, always: not this, spare: 9",
        &[(
            "a",
            "known: {role: required, mapping: {name: inner}},
             given: {role: optional, default: '\"default\"'},
             absent: {role: optional, default: '[1, 2]'},
             nothing: {role: optional},
             always: {role: const, default: '\"this\"'},
             out: {role: output}",
            ONCE,
        )],
    );
    let expected = json!({
        "inner": {"deep": [1, null]},
        "given": "over",
        "absent": [1, 2],
        "always": "this",
    });
    assert_eq!(test.arguments(item_at(0)), expected);
}

#[test]
fn a_step_waits_for_an_optional_input_while_it_may_still_be_set() {
    let steps = [("a", "x: {role: output}", ONCE), ("b", "x: {role: optional, default: '0'}", ONCE)];
    for (outputs, seen) in [(json!({"x": 7}), 7), (json!({}), 0)] {
        let mut test = flow("b", "", &steps);
        assert_eq!(test.start().records().len(), 1);
        test.succeed_item(item_at(0), &outputs);
        assert_eq!(test.arguments(StepId(1).item(0)), json!({"x": seen}));
    }
    // A failed step sets nothing either.
    let mut test = flow("b", "", &steps);
    test.start().fail_item(item_at(0), FailureCause::Status(404));
    assert_eq!(test.arguments(StepId(1).item(0)), json!({"x": 0}));
    test.start().succeed_item(StepId(1).item(0), &json!({}));
    assert_eq!(test.outcome(), ("completed", None, [1, 1, 0]));
}

#[test]
fn every_combination_of_for_each_inputs_is_an_item_in_order() {
    let mut test = flow(
        "a",
        "x: [1, 2], y: [p, q, r], z: [0]",
        &[(
            "a",
            "x: {role: required, for_each: true}, y: {role: required, for_each: true, mapping: {name: w}},
             z: {role: required}, out: {role: output, mapping: {name: inner}}, none: {role: output}",
            ", work_config: {parallelism: 6}",
        )],
    );
    assert_eq!(test.start().records().len(), 6);
    let seen: Vec<Value> = (0..6).map(|item| test.arguments(item_at(item))).collect();
    assert_eq!(seen[0], json!({"x": 1, "w": "p", "z": [0]}));
    assert_eq!(seen[1], json!({"x": 1, "w": "q", "z": [0]}));
    assert_eq!(seen[5], json!({"x": 2, "w": "r", "z": [0]}));
    // The results are in the order of the items.
    for item in (0..6).rev() {
        let outputs = if item == 3 { json!({}) } else { json!({"inner": item}) };
        test.succeed_item(item_at(item), &outputs);
    }
    let expected = json!([
        {"x": 1, "w": "p", "inner": 0},
        {"x": 1, "w": "q", "inner": 1},
        {"x": 1, "w": "r", "inner": 2},
        {"x": 2, "w": "q", "inner": 4},
        {"x": 2, "w": "r", "inner": 5},
    ]);
    assert_eq!(test.attribute("out"), expected);
    assert_eq!(test.job.attributes.get("none"), None, "no item set it");
    assert_eq!(test.report().items.total, 6);
}

#[test]
fn a_single_item_sets_plain_outputs_and_no_items_set_an_empty_list() {
    let steps = [
        ("a", "x: {role: required, for_each: true}, y: {role: output}", ONCE),
        ("b", "y: {role: required}", ONCE),
    ];
    let mut test = flow("b", "x: [5]", &steps);
    test.start().succeed_item(item_at(0), &json!({"y": {"deep": 1}, "undeclared": 2}));
    assert_eq!(test.arguments(StepId(1).item(0)), json!({"y": {"deep": 1}}));
    assert_eq!(test.job.attributes.get("undeclared"), None);
    let mut test = flow("b", "x: []", &steps);
    assert_eq!(test.arguments(StepId(1).item(0)), json!({"y": []}));
    test.start().succeed_item(StepId(1).item(0), &json!({}));
    assert_eq!(test.outcome(), ("completed", None, [1, 0, 0]));
}

#[test]
fn for_each_inputs_must_be_arrays_with_a_bounded_product() {
    let each = "x: {role: required, for_each: true}, y: {role: required, for_each: true}";
    let many: Vec<u32> = (0..400).collect();
    let many = json!(many).to_string();
    for (init, message) in [
        ("x: 5, y: [1]".to_owned(), "`x` has `for_each`, but its value is not an array"),
        (format!("x: {many}, y: {many}"), "`x` and `y` together produce more than 100000 items"),
    ] {
        let test = flow("a", &init, &[("a", each, ONCE)]);
        let report = test.report();
        assert_eq!((report.status.word(), report.reason), ("failed", Some(Reason::Permanent)));
        let error = report.error.unwrap();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn a_predicate_skips_a_step_and_an_error_in_it_fails_the_step() {
    for (script, word) in [
        ("x > 1", "completed"),
        ("x > 1 && size(names) == 2 && o.deep == 'é'", "completed"),
        ("x > 100", "skipped"),
        ("x", "error"),
        ("unknown > 1", "error"),
        ("1 / (x - 5) > 0", "error"),
    ] {
        let more = format!(", predicate: {{language: cel, script: \"{script}\"}}");
        let mut test = flow(
            "a",
            "x: 5, names: [a, b], o: {deep: é}",
            &[(
                "a",
                "x: {role: required}, names: {role: required, for_each: true}, o: {role: required}",
                &more,
            )],
        );
        match word {
            "completed" => assert_eq!(test.start().records().len(), 1, "{script}"),
            "skipped" => {
                // A skipped step has no items.
                assert_eq!(test.outcome(), ("completed", None, [0, 0, 0]), "{script}");
            }
            _ => {
                let report = test.report();
                assert_eq!(report.status.word(), "failed", "{script}");
                assert!(report.error.unwrap().contains("predicate"), "{script}");
            }
        }
    }
}

#[test]
fn outputs_of_a_skipped_step_are_never_set() {
    let steps = |role: &'static str| {
        [("a", "x: {role: output}", ", predicate: {script: 'false'}"), ("b", role, ONCE)]
    };
    let test = flow("b", "", &steps("x: {role: required}"));
    assert_eq!(test.outcome().0, "failed");
    let test = flow("b", "", &steps("x: {role: optional, default: '1'}"));
    assert_eq!(test.arguments(StepId(1).item(0)), json!({"x": 1}));
    // The predicate sees the arguments of the step, constants and defaults included.
    let more = ", predicate: {script: 'x == 3 && y == 4'}";
    let taken = "x: {role: const, default: '3'}, z: {role: optional, default: '4', mapping: {name: y}}";
    assert_eq!(flow("a", "", &[("a", taken, more)]).ready(), [item_at(0)]);
}
