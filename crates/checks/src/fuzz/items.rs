//! The laws of a selection: which items are selected and how they are named.
//!
//! Each step is evaluated alone and together with the others. The expected items are computed from what a
//! filter, an order or a path says about single values.

use std::collections::BTreeSet;

use serde_json::Value;
use undaunted_engine::workflow::input::{Selection, WorkItem};

use super::law::{Law, first_broken, uphold};

pub(super) fn select(selection: &Selection, document: &Value) {
    let whole = Selection { json_path: selection.json_path.clone(), ..Selection::default() };
    let items = selected(&whole, document);
    let Some(items) = items else {
        let without_path = whole.json_path.is_none();
        let refused = without_path && !document.is_array();
        uphold("only a document without a list is refused", refused, document);
        return;
    };
    let found: Vec<&Value> = match &whole.json_path {
        Some(path) => path.query(document),
        None => document.as_array().into_iter().flatten().collect(),
    };
    let taken = items.iter().map(|item| &item.input).eq(found.iter().copied());
    uphold("what is found is taken, in its order", taken, &(selection, document));
    hold(named(&items), &items);
    check_reversed(&found, &items);
    let narrowed = selected(selection, document).unwrap_or_default();
    hold(named(&narrowed), &narrowed);
    hold(narrowing(selection, &found, &narrowed), &(selection, document));
    check_range(selection, document, &narrowed);
}

/// Whether a path can be evaluated quickly: each `..` and each `,` multiplies what it finds.
pub(super) fn can_be_asked(path: &str) -> bool {
    path.matches("..").count() + path.matches(',').count() <= 1
}

fn selected(selection: &Selection, document: &Value) -> Option<Vec<WorkItem>> {
    selection.select(document.clone()).ok().map(|selected| selected.items)
}

fn named(items: &[WorkItem]) -> Option<&'static str> {
    let names: BTreeSet<&str> = items.iter().map(|item| item.identity.as_str()).collect();
    let said = |name: &&str| !name.is_empty() && !name.chars().any(char::is_control);
    first_broken([
        ("no two items have one name", names.len() == items.len()),
        ("every name can be said", names.iter().all(said)),
    ])
}

/// Names do not depend on the order of the items.
fn check_reversed(found: &[&Value], items: &[WorkItem]) {
    let reversed = found.iter().rev().copied().cloned().collect();
    let reversed = selected(&Selection::default(), &Value::Array(reversed)).unwrap_or_default();
    let sorted = |items: &[WorkItem]| -> BTreeSet<(String, String)> {
        let pair = |item: &WorkItem| (item.identity.clone(), item.input.to_string());
        items.iter().map(pair).collect()
    };
    let same = sorted(items) == sorted(&reversed);
    uphold("a name does not depend on the order", same, &(items, reversed));
}

fn narrowing(selection: &Selection, found: &[&Value], items: &[WorkItem]) -> Option<&'static str> {
    let inputs: Vec<&Value> = items.iter().map(|item| &item.input).collect();
    let mut expected: Vec<&Value> = found.to_vec();
    if let Some(filter) = &selection.filter {
        expected.retain(|value| filter.matches(value));
    }
    let all = expected.len();
    let sorted = selection.sort_by.as_ref().is_none_or(|order| {
        let mut pairs = inputs.iter().zip(inputs.iter().skip(1));
        pairs.all(|(a, b)| order.compare(a, b).is_le())
    });
    let laws: [Law; 4] = [
        ("a filter takes what it holds for", inputs.iter().all(|input| expected.contains(input))),
        ("nothing is lost without a reason", selection.distinct.is_some() || inputs.len() == all),
        ("items come in their order", sorted),
        ("the first of each kind is always taken", all == 0 || !inputs.is_empty()),
    ];
    first_broken(laws.into_iter().chain([distinct(selection, &inputs)]))
}

fn distinct(selection: &Selection, inputs: &[&Value]) -> Law {
    let law = "no two items have one distinct value";
    let Some(path) = &selection.distinct else {
        return (law, true);
    };
    let values = inputs.iter().map(|input| path.get(input).unwrap_or(&Value::Null));
    let values: BTreeSet<String> = values.map(Value::to_string).collect();
    (law, values.len() == inputs.len())
}

/// Offset and limit select a range.
fn check_range(selection: &Selection, document: &Value, items: &[WorkItem]) {
    for (offset, most) in [(0, 0), (1, 2), (2, usize::MAX), (usize::MAX, usize::MAX)] {
        let check_range = Selection { offset, max_items: Some(most), ..selection.clone() };
        let part = selected(&check_range, document).unwrap_or_default();
        let expected = items.iter().skip(offset).take(most).map(|item| &item.input);
        let taken = part.iter().map(|item| &item.input).eq(expected);
        uphold("a part is a part of the whole", taken, &(check_range, document));
    }
}

fn hold(broken: Option<&'static str>, facts: &dyn std::fmt::Debug) {
    if let Some(law) = broken {
        uphold(law, false, facts);
    }
}
