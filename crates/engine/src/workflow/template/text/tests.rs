//! How texts with references are rendered and refused, and how references are read.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::workflow::template::fixture::{TestItem, with_names};
use crate::workflow::template::{Root, Segment};

fn parse(text: &str) -> Result<TextTemplate, Vec<SyntaxError>> {
    with_names(|names| TextTemplate::parse(text, names))
}

fn render(text: &str, item: Value) -> String {
    parse(text).unwrap().render(&TestItem(item)).unwrap()
}

const BRACKETS: &str = "brackets must hold a number or a name in quotes, as in `[0]` or `['a b']`";

fn refused(text: &str) -> (Vec<&str>, String, String) {
    let errors = parse(text).unwrap_err();
    let marked = errors.iter().map(|error| &text[error.range.clone()]);
    let first = errors[0].clone();
    (marked.collect(), first.message, first.help.unwrap())
}

#[test]
fn a_string_is_inserted_as_it_is_and_the_rest_as_compact_json() {
    let item = json!({"name": "Åsa \"A\"", "n": 1.5, "yes": true, "list": [1, {"a": null}]});
    assert_eq!(
        render("<${item.name}> ${item.n} ${item.yes}${item.list} ${item.list[0]}", item),
        "<Åsa \"A\"> 1.5 true[1,{\"a\":null}] 1"
    );
    assert_eq!(render("${item}", json!("all of it")), "all of it");
    assert_eq!(render("${item}", json!({"b": 1, "a": []})), r#"{"a":[],"b":1}"#);
    assert_eq!(render("${version}", json!(0)), "version");
    assert_eq!(render("${raw:item}", json!("raw")), "raw");
}

#[test]
fn a_default_stands_in_for_what_is_missing_null_or_empty() {
    let item = json!({"empty": "", "null": null, "zero": 0, "no": false});
    for (text, expected) in [
        ("${item.none:-d}", "d"),
        ("${item.null:-d}", "d"),
        ("${item.empty:-d}", "d"),
        ("${item.empty}", ""),
        ("${item.zero:-d}", "0"),
        ("${item.no:-d}", "false"),
        ("${item.none:-}", ""),
        ("${item.none:-{\"a\": {}}}!", "{\"a\": {}}!"),
        ("${item.none:-it's $5 :-)}", "it's $5 :-)"),
        ("${item.none:-two\nlines}", "two\nlines"),
    ] {
        assert_eq!(render(text, item.clone()), expected, "{text}");
    }
}

#[test]
fn a_value_that_is_missing_too_large_or_holds_nul_is_refused() {
    let error = |text: &str, item| parse(text).unwrap().render(&TestItem(item)).unwrap_err();
    let missing = error("${item.a.b[0]}", json!({"a": {"b": null}}));
    assert_eq!(missing.to_string(), "`item.a.b[0]` has no value");
    assert!(missing.help().contains(":-"));
    assert_eq!(error("${item}", json!(null)), ValueError::Missing { name: "item".into() });

    assert_eq!(render("${item}", json!("x".repeat(102_400))).len(), 102_400);
    let large = error("${item}", json!("x".repeat(102_401)));
    assert_eq!(large.to_string(), "`item` has 102401 bytes; at most 102400 can be passed to a command");
    assert!(large.help().contains("${item_file}"));
    assert_eq!(error("${item}", json!("a\0b")), ValueError::HoldsNul { name: "item".into() });
}

#[test]
fn a_value_is_never_read_as_a_template() {
    assert_eq!(render("${item}${item}", json!("${item.x} $${")), "${item.x} $${${item.x} $${");
}

#[test]
fn dollars_are_read_in_pairs_from_the_left() {
    for (text, expected) in [
        ("$ $5 $$ $x {}", "$ $5 $$ $x {}"),
        ("$${item}", "${item}"),
        ("$$${item}", "$$V"),
        ("$$$${item}", "$$${item}"),
        ("$", "$"),
        ("$$", "$$"),
        ("$${", "${"),
    ] {
        assert_eq!(render(text, json!("V")), expected, "{text}");
    }
}

#[test]
fn the_reference_says_what_was_written() {
    let template = parse("a ${item.a-b_1.c[10].d:-x} ${raw:version} ${item.a}").unwrap();
    let references: Vec<_> = template.references().collect();
    assert_eq!(references.len(), 3);
    let first = references[0];
    assert_eq!(first.text(), "item.a-b_1.c[10].d");
    assert_eq!(first.root(), &Root::Item);
    let field = |name: &str| Segment::Field(name.into());
    assert_eq!(first.path(), [field("a-b_1"), field("c"), Segment::Index(10), field("d")]);
    assert_eq!(first.default(), Some("x"));
    assert!(!first.is_raw());
    assert_eq!(references[1].text(), "version");
    assert_eq!(references[1].root(), &Root::Captured("version".into()));
    assert!(references[1].is_raw());
}

#[test]
fn a_brace_that_is_no_reference_is_refused_with_the_way_to_write_it() {
    for (text, marked, message) in [
        ("a ${HOME} b", "${HOME}", "unknown name `HOME`"),
        ("${itme.x}", "${itme.x}", "unknown name `itme.x`"),
        ("${}", "${", "expected a name after `${`"),
        ("${1}", "${", "expected a name after `${`"),
        ("x ${", "${", "expected a name after `${`"),
        ("${item.x", "${item.x", "`${item.x` has no closing `}`"),
        ("${item.x:-y", "${item.x:-y", "`${item.x` has no closing `}`"),
        ("${item.x\n}", "${item.x", "`${item.x` has no closing `}`"),
        ("${item.}", "${item.", "expected a name after the `.`"),
        ("${item[x]}", "${item", BRACKETS),
        ("${item[0}", "${item", BRACKETS),
        ("${item[99999999999999999999]}", "${item", BRACKETS),
        ("${item.x%.y}", "${item.x", "`%` cannot follow `item.x`"),
        ("${item x}", "${item", "` ` cannot follow `item`"),
        ("${raw:nothing}", "${raw:nothing}", "unknown name `nothing`"),
    ] {
        let (marks, found, help) = refused(text);
        assert_eq!((marks[0], found.as_str()), (marked, message), "{text}");
        assert!(help.contains("$${"), "{text}: {help}");
    }
    let (_, message, _) = refused("${item.x:-${item.y}}");
    assert_eq!(message, "the default of `item.x` is plain text; nothing in it is expanded");
}

#[test]
fn every_error_is_reported_at_once() {
    let (marks, _, _) = refused("${a} ${item} ${b.c} ${item.ok} ${map.total}");
    assert_eq!(marks, ["${a}", "${b.c}", "${map.total}"]);
}

proptest! {
    #[test]
    fn a_text_without_references_stays_as_it_is(text in "[^{]*") {
        prop_assert_eq!(render(&text, json!(0)), text);
    }

    #[test]
    fn any_text_can_be_written(text in any::<String>()) {
        // Pairs of dollars stand for themselves, so only a brace behind one needs another.
        prop_assume!(!text.contains("$$"));
        prop_assert_eq!(render(&text.replace("${", "$${"), json!(0)), text);
    }

    #[test]
    fn no_text_makes_the_parser_panic(pieces in prop::collection::vec(piece(), 0..12)) {
        let _ = parse(&pieces.concat());
    }

    #[test]
    fn any_value_comes_out_as_it_went_in(value in any::<String>()) {
        prop_assume!(!value.contains('\0'));
        prop_assert_eq!(render("[${item.x}]", json!({"x": value})), format!("[{value}]"));
    }
}

fn piece() -> impl Strategy<Value = String> {
    const KNOWN: [&str; 15] =
        ["${", "$", "{", "}", "item", ".", "[", "0", "]", ":-", "raw:", "version", "-", "é", "\n"];
    prop_oneof![
        3 => prop::sample::select(&KNOWN[..]).prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

#[test]
fn a_field_that_is_no_plain_word_is_written_in_quotes() {
    let item = json!({"first name": "A", "a": {"b c": ["B"]}, "it's \"": "C", "é\n": "D", "0": "E"});
    for (text, expected) in [
        ("${item['first name']}", "A"),
        (r#"${item["first name"]}"#, "A"),
        ("${item.a['b c'][0]}", "B"),
        ("${item['a']['b c'][0]:-x}", "B"),
        (r#"${item['it\'s "']}"#, "C"),
        (r#"${item["it's \""]}"#, "C"),
        (r"${item['\u00e9\n']}", "D"),
        ("${item['0']}", "E"),
        ("${item['none']:-F}", "F"),
    ] {
        assert_eq!(render(text, item.clone()), expected, "{text}");
    }
    for text in [
        "${item['a}",
        "${item['a'}",
        "${item['a\"]}",
        "${item['a\n']}",
        r"${item['\d']}",
        "${item['",
        "${item['\\",
    ] {
        let (marks, message, _) = refused(text);
        assert_eq!(marks, ["${item"], "{text}");
        assert!(message.starts_with("brackets must hold a number"), "{message}");
    }
    let template = parse("${item.a['b c'][0]}").unwrap();
    let reference = template.references().next().unwrap();
    assert_eq!(reference.text(), "item.a['b c'][0]");
}

#[test]
fn a_name_ends_before_a_dash() {
    let captured = BTreeSet::from(["last-line".to_owned()]);
    let names = KnownNames { item: false, map: false, captured: &captured, steps: &BTreeSet::new() };
    let errors = TextTemplate::parse("${last-line}", &names).unwrap_err();
    assert_eq!(errors[0].message, "`-` cannot follow `last`");
}

#[test]
fn after_a_thousand_errors_it_reads_no_further() {
    let errors = parse(&"${nothing.x} ".repeat(5000)).unwrap_err();
    assert_eq!(errors.len(), 1000);
}
