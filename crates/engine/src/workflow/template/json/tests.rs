//! How JSON with references is rendered and refused.

use serde_json::json;

use super::*;
use crate::workflow::template::fixture::{TestItem, with_names};

fn parse(value: &Value) -> Result<JsonTemplate, Vec<JsonTemplateError>> {
    with_names(|names| JsonTemplate::parse(value, names))
}

fn item() -> TestItem {
    TestItem(json!({"n": 7, "list": [1, "a"], "text": "t\"", "null": null, "empty": ""}))
}

fn render(value: &Value) -> Result<Value, ValueError> {
    parse(value).unwrap().render(&item())
}

#[test]
fn one_reference_is_replaced_by_the_value_itself() {
    let template = json!({
        "n": "${item.n}",
        "deep": [["${item.list}"], {"a/b~c": "${item.text}"}],
        "all": "${item}",
    });
    assert_eq!(
        render(&template).unwrap(),
        json!({
            "n": 7,
            "deep": [[[1, "a"]], {"a/b~c": "t\""}],
            "all": item().0,
        })
    );
    assert_eq!(render(&json!("${item.list[0]}")).unwrap(), json!(1));
}

#[test]
fn in_a_longer_string_values_are_text() {
    let template = json!(["n=${item.n}", "${item.n}${item.n}", " ${item.list}", "$${item.n}"]);
    assert_eq!(render(&template).unwrap(), json!(["n=7", "77", " [1,\"a\"]", "${item.n}"]));
}

#[test]
fn keys_and_everything_but_strings_stay_as_they_are() {
    let template = json!({"${item.n}": [1, true, null, "plain $x"]});
    assert_eq!(render(&template).unwrap(), template);
}

#[test]
fn a_default_is_a_string_and_a_missing_value_is_refused() {
    assert_eq!(render(&json!("${item.null:-5}")).unwrap(), json!("5"));
    assert_eq!(render(&json!("${item.empty:-x}")).unwrap(), json!("x"));
    for text in ["${item.null}", "a ${item.none}"] {
        let error = render(&json!([text])).unwrap_err();
        assert!(matches!(error, ValueError::Missing { .. }), "{text}");
    }
}

#[test]
fn a_value_of_any_size_is_welcome() {
    let large = TestItem(json!("x\0".repeat(200_000)));
    for text in ["${item}", "${item}."] {
        assert!(parse(&json!(text)).unwrap().render(&large).is_ok());
    }
}

#[test]
fn what_is_wrong_is_found_by_its_pointer() {
    let errors = parse(&json!({
        "a": ["ok", {"x/y~": "see ${foo.bar} and ${nope}"}],
        "b": "${item.n",
    }))
    .unwrap_err();
    let found: Vec<_> =
        errors.iter().map(|error| (error.pointer.as_str(), error.error.range.clone())).collect();
    assert_eq!(found, [("/a/1/x~1y~0", 4..14), ("/a/1/x~1y~0", 19..26), ("/b", 0..8)]);
}

#[test]
fn references_come_in_the_order_of_the_value() {
    let template = parse(&json!({"a": ["${item.x}", {"b": "${item.y} ${item.z}"}], "c": "${item}"}));
    let template = template.unwrap();
    let texts: Vec<_> = template.references().map(Reference::text).collect();
    assert_eq!(texts, ["item.x", "item.y", "item.z", "item"]);
}

#[test]
fn after_a_thousand_errors_it_reads_no_further() {
    let wrong = vec![json!("${nothing.x} ${nothing.y} ${nothing.z}"); 5000];
    assert_eq!(parse(&json!(wrong)).unwrap_err().len(), 1000);
}

#[test]
fn a_field_in_quotes_is_the_value_itself() {
    let template = parse(&json!({"n": "${item['a b'][0]}"})).unwrap();
    let rendered = template.render(&TestItem(json!({"a b": [7]}))).unwrap();
    assert_eq!(rendered, json!({"n": 7}));
}
