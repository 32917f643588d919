//! Filters, orders, paths and inputs from any text.
//!
//! The first line and the whole text are read as each of them; the text after the first line is read as an
//! input in every format. Accepted ones are evaluated on values of every kind, and select items, which keep
//! the laws of `items`.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt::Debug;

use serde_json::{Value, json};
use undaunted_engine::workflow::filter::{FieldPath, Filter, SortBy, SyntaxError};
use undaunted_engine::workflow::input::{InputError, InputFormat, JsonPath, Selection, read};

use super::items;
use super::law::{Law, first_broken, uphold};

/// Texts longer than this are refused by the language.
const LONGEST: usize = 10_000;

pub fn workflow_filter(data: &[u8]) -> BTreeSet<&'static str> {
    let end = data.iter().position(|byte| *byte == b'\n');
    let (line, rest) = data.split_at(end.unwrap_or(data.len()));
    let rest = rest.get(1..).unwrap_or_default();
    let mut outcomes = BTreeSet::new();
    let documents = documents(rest, &mut outcomes);
    for bytes in [line, data] {
        let text = String::from_utf8_lossy(bytes);
        let selection = selection(&text, &mut outcomes);
        for document in &documents {
            items::select(&selection, document);
        }
    }
    outcomes
}

fn documents(data: &[u8], outcomes: &mut BTreeSet<&'static str>) -> Vec<Value> {
    let mut documents = vec![samples()];
    for format in InputFormat::ALL.iter().copied() {
        let name = format.word();
        let input = read(data, format);
        uphold("the same bytes give the same input", input == read(data, format), &input);
        if !data.starts_with(b"\xEF\xBB\xBF") {
            let marked = read(&[b"\xEF\xBB\xBF", data].concat(), format);
            uphold("a byte order mark means nothing", input == marked, &(&input, &marked));
        }
        match input {
            Ok(document) => {
                outcomes.insert(name);
                let list = document.is_array() || format == InputFormat::Json;
                uphold("what is no JSON document is a list", list, &document);
                documents.push(document);
            }
            Err(error) => refused_input(data, format, &error),
        }
    }
    documents
}

fn refused_input(data: &[u8], format: InputFormat, error: &InputError) {
    let lines = data.split(|byte| *byte == b'\n').count();
    let longest = data.split(|byte| *byte == b'\n').map(<[u8]>::len).max();
    let most = longest.unwrap_or_default() + 1;
    let laws = [
        ("a refusal has words", !error.message.is_empty()),
        ("a refusal names the format", error.format == Some(format)),
        ("a refusal names a line that is there", error.line.is_none_or(|line| (1..=lines).contains(&line))),
        (
            "a refusal names a column that is there",
            error.column.is_none_or(|column| (1..=most).contains(&column)),
        ),
        ("a column belongs to a line", error.line.is_some() || error.column.is_none()),
    ];
    hold(first_broken(laws), &(String::from_utf8_lossy(data), error));
}

/// A selection made of everything that accepts the text.
fn selection(text: &str, outcomes: &mut BTreeSet<&'static str>) -> Selection {
    let filter = accepted("filter", text, Filter::parse, outcomes);
    if let Some(filter) = &filter {
        check_negation(text, filter);
    }
    let sort_by = accepted("sort_by", text, SortBy::parse, outcomes);
    if let Some(order) = &sort_by {
        hold(broken_order(|a, b| order.compare(a, b)), order);
    }
    let distinct = accepted("distinct", text, FieldPath::parse, outcomes);
    if let Some(path) = &distinct {
        let written = path.to_string();
        let again = FieldPath::parse(&written);
        let long = written.chars().nth(LONGEST).is_some();
        let same = long || again.as_ref() == Ok(path);
        uphold("a path that is written down is the same path", same, &(path, again));
    }
    let json_path = accepted("json_path", text, JsonPath::parse, outcomes);
    if let Some(path) = &json_path {
        uphold("a path is kept as written", path.as_str() == text, path);
    }
    Selection {
        json_path: json_path.filter(|path| items::can_be_asked(path.as_str())),
        filter,
        sort_by,
        distinct,
        offset: 0,
        max_items: None,
    }
}

fn accepted<T: PartialEq + Debug>(
    name: &'static str,
    text: &str,
    parse: fn(&str) -> Result<T, SyntaxError>,
    outcomes: &mut BTreeSet<&'static str>,
) -> Option<T> {
    let parsed = parse(text);
    uphold("the same text is read the same", parsed == parse(text), &parsed);
    match parsed {
        Ok(parsed) => {
            outcomes.insert(name);
            Some(parsed)
        }
        Err(error) => {
            let helps = error.help.as_ref().is_none_or(|help| !help.is_empty());
            let laws = [
                ("a refusal has words", helps && !error.message.is_empty()),
                ("a refusal marks a part of the text", text.get(error.range.clone()).is_some()),
            ];
            hold(first_broken(laws), &(name, text, &error));
            None
        }
    }
}

fn check_negation(text: &str, filter: &Filter) {
    let denial = match Filter::parse(&format!("!({text})")) {
        Ok(denial) => denial,
        Err(error) => {
            let bounds = ["nested", "longer"].map(|word| error.message.contains(word));
            let law = "a filter can be denied, if there is room";
            uphold(law, bounds.contains(&true), &(text, error));
            return;
        }
    };
    for value in values() {
        let opposed = filter.matches(&value) != denial.matches(&value);
        uphold("a filter holds, or its denial does", opposed, &(text, value));
    }
}

/// The first law of a total order that the comparison breaks.
pub(super) fn broken_order(compare: impl Fn(&Value, &Value) -> Ordering) -> Option<&'static str> {
    let mut values = values();
    values.sort_by(&compare);
    let pairs = values.iter().enumerate().flat_map(|(at, a)| {
        let later = values.iter().skip(at);
        later.map(move |b| (a, b))
    });
    let laws = pairs.flat_map(|(a, b)| -> [Law; 3] {
        let (there, back) = (compare(a, b), compare(b, a));
        [
            ("both ways of asking give one order", there == back.reverse()),
            ("what is sorted stays sorted", there.is_le()),
            ("everything is equal to itself", compare(a, a).is_eq()),
        ]
    });
    first_broken(laws)
}

/// Values of every kind, at the ends of their ranges.
fn values() -> Vec<Value> {
    match samples() {
        Value::Array(values) => values,
        other => vec![other],
    }
}

fn samples() -> Value {
    json!([
        null,
        true,
        0,
        -0.0,
        1.0,
        u64::MAX,
        9_007_199_254_740_993_i64,
        9_007_199_254_740_992.0_f64,
        "",
        "a",
        "A/b",
        [],
        [1, [2]],
        {},
        {"a": 1, "b": "x", "id": 1},
        {"a": 1.0, "b": null, "id": "1"},
        {"a": "1", "b": [1, {"c": 2}], "id": "cbf29ce484222325"},
        {"a": null, "id": null},
        {"item": {"a": [{"b": -1}]}, "priority": 5},
        {"a": 1, "b": "x", "id": 1},
    ])
}

fn hold(broken: Option<&'static str>, facts: &dyn Debug) {
    if let Some(law) = broken {
        uphold(law, false, facts);
    }
}
