//! Laws of the whole language, for any text and any value.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::order::compare;
use super::{FieldPath, Filter, SortBy, SyntaxError};

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..3).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-6_i8..6).prop_map(|halves| Value::from(f64::from(halves) / 2.0)),
        // Where a float can no longer hold every integer.
        (0_u64..8).prop_map(|near| Value::from((1_u64 << 53) + near)),
        (0_u32..4).prop_map(|near| Value::from(9_007_199_254_740_992.0 + 2.0 * f64::from(near))),
        "[ab]{0,2}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 16, 4, |inner| {
        let fields = prop::collection::btree_map("[ab]", inner.clone(), 0..3);
        prop_oneof![
            prop::collection::vec(inner, 0..3).prop_map(Value::from),
            fields.prop_map(|fields: BTreeMap<String, Value>| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Values without objects, which filters cannot spell.
fn literal() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 16, 4, |inner| prop::collection::vec(inner, 0..3).prop_map(Value::from))
}

fn item() -> impl Strategy<Value = Value> {
    (value(), value()).prop_map(|(a, b)| json!({"a": a, "b": b}))
}

fn expression() -> impl Strategy<Value = String> {
    let operand = prop_oneof![
        Just("a".to_owned()),
        Just("item.b".to_owned()),
        Just("a.b[0]".to_owned()),
        literal().prop_map(|value| value.to_string()),
    ];
    let relation = prop::sample::select(vec!["==", "!=", "<", "<=", ">", ">=", "in", "contains", "not in"]);
    let atom = prop_oneof![
        operand.clone(),
        (operand.clone(), relation, operand).prop_map(|(a, relation, b)| format!("{a} {relation} {b}")),
    ];
    atom.prop_recursive(4, 24, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) && ({b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) or ({b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("contains({a}, {b})")),
            inner.prop_map(|a| format!("not ({a})")),
        ]
    })
}

/// Text that is nearly a filter, an order or a path.
fn nearly() -> impl Strategy<Value = String> {
    let pieces = vec![
        "a", "item", ".", "[", "]", "0", "(", ")", "'", "\"", "\\", "\\u", "d83d", "==", "=", "!", "<", ">",
        "&&", "|", " ", "in", "not", "contains", ",", "-", "1e5", "1.", "null", "DESC", "nulls", "é", "😀",
        "\n",
    ];
    prop::collection::vec(prop::sample::select(pieces), 0..24).prop_map(|pieces| pieces.concat())
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![nearly(), any::<String>(), expression()]
}

#[track_caller]
fn holds(filter: &str, item: &Value) -> bool {
    Filter::parse(filter).unwrap_or_else(|error| panic!("{filter}: {error:?}")).matches(item)
}

fn marks_a_piece_of(text: &str, error: &SyntaxError) -> bool {
    let lower = error.message.chars().next().is_some_and(|first| !first.is_uppercase());
    text.get(error.range.clone()).is_some() && lower
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_with_a_place_inside_it(text in text(), item in item()) {
        match Filter::parse(&text) {
            Ok(filter) => prop_assert_eq!(filter.matches(&item), filter.clone().matches(&item)),
            Err(error) => prop_assert!(marks_a_piece_of(&text, &error), "{:?}", error),
        }
        match FieldPath::parse(&text) {
            Ok(path) => prop_assert_eq!(path.get(&item), path.clone().get(&item)),
            Err(error) => prop_assert!(marks_a_piece_of(&text, &error), "{:?}", error),
        }
        match SortBy::parse(&text) {
            Ok(order) => prop_assert_eq!(order.compare(&item, &item), Ordering::Equal),
            Err(error) => prop_assert!(marks_a_piece_of(&text, &error), "{:?}", error),
        }
    }

    #[test]
    fn a_literal_is_the_value_it_spells(value in literal()) {
        // The value is the one that the input would read; its last digit may differ.
        let text = value.to_string();
        let value: Value = serde_json::from_str(&text).unwrap();
        for filter in [format!("item == {text}"), format!("item in [{text}]")] {
            prop_assert!(holds(&filter, &value), "{}", filter);
        }
    }

    #[test]
    fn text_may_stand_in_either_quote(text in any::<String>()) {
        let single = text.replace('\\', "\\\\").replace('\'', "\\'");
        let filter = format!("item == '{single}'");
        prop_assert!(holds(&filter, &json!(text)), "{}", filter);
    }

    #[test]
    fn a_path_printed_is_the_same_path(steps in prop::collection::vec((any::<String>(), any::<usize>(), 0..3), 0..5)) {
        let steps = steps.into_iter().map(|(name, index, kind)| match kind {
            0 => format!("[{index}]"),
            1 => format!("[{}]", json!(name)),
            _ => ".name-1".to_owned(),
        });
        let text: Vec<String> = ["item".to_owned()].into_iter().chain(steps).collect();
        let path = FieldPath::parse(&text.concat()).unwrap();
        prop_assert_eq!(FieldPath::parse(&path.to_string()).unwrap(), path);
    }

    #[test]
    fn de_morgan(a in expression(), b in expression(), item in item()) {
        prop_assert_eq!(
            holds(&format!("!(({a}) && ({b}))"), &item),
            holds(&format!("not ({a}) or !({b})"), &item)
        );
        prop_assert_eq!(
            holds(&format!("!(({a}) || ({b}))"), &item),
            holds(&format!("not ({a}) and !({b})"), &item)
        );
        prop_assert_eq!(holds(&format!("!!({a})"), &item), holds(&a, &item));
    }

    #[test]
    fn comparisons_agree_with_each_other(item in item()) {
        let [less, equal, greater, at_most, at_least, different] =
            ["a < b", "a == b", "a > b", "a <= b", "a >= b", "a != b"].map(|filter| holds(filter, &item));
        prop_assert_eq!(different, !equal);
        prop_assert!(u8::from(less) + u8::from(equal) + u8::from(greater) <= 1);
        prop_assert_eq!(at_most, less || equal && !item["a"].is_null());
        prop_assert_eq!(at_least, greater || equal && !item["a"].is_null());
        prop_assert_eq!(less, holds("b > a", &item));
    }

    #[test]
    fn contains_and_in_are_one_question(item in item()) {
        let answer = holds("a contains b", &item);
        for filter in ["b in a", "contains(a, b)", "!(b not in a)", "not a not contains b"] {
            prop_assert_eq!(holds(filter, &item), answer, "{}", filter);
        }
    }

    #[test]
    fn integers_and_floats_compare_by_their_exact_value(integer in any::<i64>(), float in -1e19..1e19_f64) {
        // Counted in parts of 1024, both are integers that fit an i128 exactly.
        let float = (float * 1024.0).trunc() / 1024.0;
        #[expect(clippy::cast_possible_truncation, reason = "within 1e19 * 2^10")]
        let exact = (float * 1024.0) as i128;
        prop_assert_eq!(compare(&json!(integer), &json!(float)), (i128::from(integer) * 1024).cmp(&exact));
    }

    #[test]
    fn the_order_of_values_is_total(a in value(), b in value(), c in value()) {
        prop_assert_eq!(compare(&a, &a), Ordering::Equal);
        prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
        if compare(&a, &b).is_le() && compare(&b, &c).is_le() {
            prop_assert!(compare(&a, &c).is_le());
        }
        if compare(&a, &b).is_eq() {
            prop_assert_eq!(compare(&a, &c), compare(&b, &c));
        }
    }

    #[test]
    fn every_sort_by_is_a_total_order(
        order in "(a|item\\.b|a\\.b)( ASC| desc)?( NULLS FIRST| nulls last)?(, b( DESC)?)?",
        a in item(), b in item(), c in item(),
    ) {
        let order = SortBy::parse(&order).unwrap();
        prop_assert_eq!(order.compare(&a, &b), order.compare(&b, &a).reverse());
        if order.compare(&a, &b).is_le() && order.compare(&b, &c).is_le() {
            prop_assert!(order.compare(&a, &c).is_le());
        }
        if order.compare(&a, &b).is_eq() {
            prop_assert_eq!(order.compare(&a, &c), order.compare(&b, &c));
        }
    }
}
