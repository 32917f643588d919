//! What a selection takes, and in which order its steps come.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn taken(selection: &Selection, document: Value) -> Vec<Value> {
    selection.select(document).unwrap().items.into_iter().map(|item| item.input).collect()
}

#[test]
fn the_elements_of_an_array_are_the_items() {
    let items = Selection::default().select(json!(["b", "a", 3])).unwrap().items;
    let pairs: Vec<_> = items.iter().map(|item| (item.identity.as_str(), &item.input)).collect();
    assert_eq!(pairs[0], ("b", &json!("b")));
    assert_eq!(pairs[1], ("a", &json!("a")));
    assert_eq!((pairs[2].0.len(), pairs[2].1), (16, &json!(3)));
    assert_eq!(Selection::default().select(json!([])), Ok(SelectedItems::default()));
}

#[test]
fn a_document_that_is_no_array_is_refused() {
    for (document, message, help) in [
        (
            json!({"count": 1, "items": []}),
            "the document is an object, not an array of items",
            "select the array in `items` with `json_path: \"$.items[*]\"`",
        ),
        (
            json!({"the 'items'": []}),
            "the document is an object, not an array of items",
            r#"select the array in `the 'items'` with `json_path: "$['the \'items\''][*]"`"#,
        ),
        (
            json!("x"),
            "the document is a string, not an array of items",
            "select the items with `json_path`, as in `json_path: \"$.items[*]\"`",
        ),
    ] {
        let error = Selection::default().select(document).unwrap_err();
        assert_eq!((error.message.as_str(), error.help.as_deref()), (message, Some(help)));
    }
}

#[test]
fn the_suggested_path_finds_the_items() {
    for name in ["items", "the 'items'", "a\\b", "größe", "0", ""] {
        let path = JsonPath::parse(&path_to(name)).unwrap();
        let selection = Selection { json_path: Some(path), ..Selection::default() };
        assert_eq!(taken(&selection, json!({name: [1, 2]})), [1, 2], "{name}");
    }
}

#[test]
fn a_json_path_finds_the_items_wherever_they_are() {
    let selection = Selection {
        json_path: Some(JsonPath::parse("$.groups[*].items[*]").unwrap()),
        ..Selection::default()
    };
    let document = json!({"groups": [{"items": [1, 2]}, {}, {"items": [3]}]});
    assert_eq!(taken(&selection, document), [1, 2, 3]);
    assert_eq!(taken(&selection, json!("anything")), Vec::<Value>::new());
}

#[test]
fn the_steps_come_in_their_order() {
    let mut selection = Selection { filter: Some(Filter::parse("n != 9").unwrap()), ..Selection::default() };
    let document = json!([
        {"n": 3, "k": "a"}, {"n": 9, "k": "z"}, {"n": 1, "k": "a"}, {"n": 2, "k": "b"}, {"n": 4}, {"n": 5, "k": null}
    ]);
    let numbers = |selection: &Selection| -> Vec<i64> {
        taken(selection, document.clone()).iter().map(|item| item["n"].as_i64().unwrap()).collect()
    };
    assert_eq!(numbers(&selection), [3, 1, 2, 4, 5]);
    selection.sort_by = Some(SortBy::parse("n").unwrap());
    assert_eq!(numbers(&selection), [1, 2, 3, 4, 5]);
    selection.distinct = Some(FieldPath::parse("item.k").unwrap());
    assert_eq!(numbers(&selection), [1, 2, 4]);
    selection.offset = 1;
    assert_eq!(numbers(&selection), [2, 4]);
    selection.max_items = Some(1);
    assert_eq!(numbers(&selection), [2]);
    selection.offset = usize::MAX;
    assert_eq!(numbers(&selection), [0; 0]);
}

#[test]
fn sorting_is_stable() {
    let selection = Selection { sort_by: Some(SortBy::parse("k DESC").unwrap()), ..Selection::default() };
    let document: Vec<Value> = (0..100).map(|n| json!({"k": n % 3, "n": n})).collect();
    let sorted = taken(&selection, Value::Array(document));
    assert!(sorted.windows(2).all(|pair| {
        let keys = |item: &Value| (-item["k"].as_i64().unwrap(), item["n"].as_i64().unwrap());
        keys(&pair[0]) < keys(&pair[1])
    }));
}

#[test]
fn names_are_given_after_the_selection() {
    let selection = Selection { filter: Some(Filter::parse("on").unwrap()), ..Selection::default() };
    let items = selection.select(json!([{"id": 1, "on": true}, {"id": 1, "on": false}])).unwrap().items;
    assert_eq!(items[0].identity, "1");
}

fn record() -> impl Strategy<Value = Value> {
    (0..4, prop::option::of(0..3), "[ab]?").prop_map(|(id, k, s)| json!({"id": id, "k": k, "s": s}))
}

proptest! {
    #[test]
    fn a_selection_filters_sorts_and_cuts_in_order(
        items in prop::collection::vec(record(), 0..20),
        offset in 0_usize..5,
        max_items in prop::option::of(0_usize..10),
        inside in any::<bool>(),
    ) {
        let selection = Selection {
            json_path: inside.then(|| JsonPath::parse("$.deep[*]").unwrap()),
            filter: Some(Filter::parse("item.s != 'b'").unwrap()),
            sort_by: Some(SortBy::parse("k DESC NULLS FIRST").unwrap()),
            distinct: Some(FieldPath::parse("id").unwrap()),
            offset,
            max_items,
        };
        let mut expected: Vec<Value> = items.iter().filter(|item| item["s"] != "b").cloned().collect();
        expected.sort_by_key(|item| item["k"].as_i64().map_or(i64::MIN, |k| -k));
        let mut seen = vec![];
        expected.retain(|item| {
            let first = !seen.contains(&item["id"]);
            seen.push(item["id"].clone());
            first
        });
        let expected: Vec<Value> =
            expected.into_iter().skip(offset).take(max_items.unwrap_or(usize::MAX)).collect();
        let document = if inside { json!({"deep": items}) } else { Value::Array(items) };
        prop_assert_eq!(taken(&selection, document), expected);
    }
}
