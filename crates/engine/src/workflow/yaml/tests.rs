//! Which texts are read as which trees, and which are refused.

use proptest::prelude::*;

use super::*;
use crate::workflow::diagnostic::{Diagnostic, DiagnosticCode, Problems};
use crate::workflow::source::Source;

fn read(source: &Source) -> (Option<YamlNode<'_>>, Vec<Diagnostic>) {
    let mut problems = Problems::default();
    let node = parse(source, &mut problems);
    (node, problems.found)
}

fn json(text: &str) -> String {
    let source = Source::new("x.yaml", text);
    let (node, problems) = read(&source);
    assert_eq!(problems, []);
    node.unwrap().to_json().to_string()
}

fn refused(text: &str) -> (DiagnosticCode, usize, usize, String) {
    let source = Source::new("x.yaml", text);
    let mut problems = Problems::default();
    parse(&source, &mut problems);
    let first = problems.found.remove(0);
    let position = source.position(first.span);
    (first.code, position.line, position.column, first.message)
}

#[test]
fn plain_words_are_what_the_core_schema_says() {
    let text = "[1, -2, +3, 0x1f, 0o17, 1.5, 1e3, .5, true, no, ~, '1', \"a\", 1.2.3, 1_000, 08]";
    assert_eq!(json(text), r#"[1,-2,3,31,15,1.5,1000.0,0.5,true,"no",null,"1","a","1.2.3","1_000",8]"#);
    assert_eq!(json("[18446744073709551615, 99999999999999999999]"), "[18446744073709551615,1e+20]");
}

#[test]
fn aliases_stand_for_what_was_anchored() {
    assert_eq!(json("a: &x {b: 1}\nc: *x\n"), r#"{"a":{"b":1},"c":{"b":1}}"#);
}

#[test]
fn bom_and_crlf_are_accepted() {
    assert_eq!(json("\u{feff}a: 1\r\nb: |\r\n  x\r\n  y\r\n"), r#"{"a":1,"b":"x\ny\n"}"#);
}

#[test]
fn a_text_that_is_no_workflow_is_refused_with_its_position() {
    let at = |text: &str| {
        let (code, line, column, _) = refused(text);
        (code, line, column)
    };
    assert_eq!(at("a: 1\nb: 2\na: 3\n"), (DiagnosticCode::DuplicateKey, 3, 1));
    assert_eq!(at("a: !!python/object x\n"), (DiagnosticCode::Syntax, 1, 4));
    assert_eq!(at("a: [1, 2\n"), (DiagnosticCode::Syntax, 1, 4));
    assert_eq!(at("a: 1\n---\nb: 2\n"), (DiagnosticCode::Syntax, 2, 1));
    assert_eq!(at(""), (DiagnosticCode::Empty, 1, 1));
    assert_eq!(at("# nothing\n"), (DiagnosticCode::Empty, 1, 1));
    assert_eq!(at("[a]: 1\n"), (DiagnosticCode::Syntax, 1, 1));
    assert_eq!(at("a: *unknown\n").0, DiagnosticCode::Syntax);
    assert_eq!(at("a: &x [*x]\n").0, DiagnosticCode::Syntax);
    assert_eq!(at("a: \u{0}\n").0, DiagnosticCode::Syntax);
}

#[test]
fn twenty_thousand_levels_are_refused() {
    for text in ["[".repeat(20_000), "{a: ".repeat(20_000), "- ".repeat(20_000)] {
        assert_eq!(refused(&text).0, DiagnosticCode::TooLarge, "{}", &text[..4]);
    }
    let lines: Vec<_> = (0..20_000_usize).map(|n| format!("{}a:", " ".repeat(n % 2000))).collect();
    let indented = lines.join("\n");
    refused(&indented);
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..20 {
        let inner = format!("*a{}", n - 1);
        let list = [inner.as_str(); 10].join(", ");
        text = format!("{text}a{n}: &a{n} [{list}]\n");
    }
    assert_eq!(refused(&text).0, DiagnosticCode::TooLarge);
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        let _ = read(&Source::new("x.yaml", text));
    }

    #[test]
    fn json_is_read_as_itself(text in json_value(3)) {
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        if value.is_null() {
            return Ok(());
        }
        prop_assert_eq!(json(&text), value.to_string());
    }
}

fn json_value(depth: u32) -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|flag| flag.to_string()),
        any::<i64>().prop_map(|number| number.to_string()),
        "[ -~é☃]{0,12}".prop_map(|text| serde_json::Value::from(text).to_string()),
    ];
    leaf.prop_recursive(depth, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|list| format!("[{}]", list.join(", "))),
            prop::collection::btree_map("[a-z]{1,4}", inner, 0..4).prop_map(|map| {
                let entries = map.iter().map(|(key, value)| format!("\"{key}\": {value}"));
                format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
            }),
        ]
    })
}
