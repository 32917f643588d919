//! The one order of all JSON values: null < boolean < number < string < array < object.
//!
//! Equality, `<`, sorting and `distinct` all use it, so they cannot disagree. Numbers are compared by
//! their exact value, integers against floats too: 9007199254740993 is not 9007199254740992.0, although
//! both are the same float. Strings compare by code point, without a locale, because the same input
//! must be in the same order everywhere.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

pub(in crate::workflow) fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => first_difference(a.iter().zip(b).map(|(a, b)| compare(a, b)))
            .unwrap_or_else(|| a.len().cmp(&b.len())),
        (Value::Object(a), Value::Object(b)) => objects(a, b),
        _ => rank(a).cmp(&rank(b)),
    }
}

/// `<` means something only between values of one type.
pub(super) fn same_type(a: &Value, b: &Value) -> bool {
    rank(a) == rank(b)
}

/// The fields of an object by name. Maps keep that order themselves unless a crate of the build enables
/// `preserve_order` of `serde_json`; our order must not depend on that.
pub(in crate::workflow) fn sorted_entries(fields: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = fields.iter().collect();
    entries.sort_unstable_by_key(|(name, _)| *name);
    entries
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}

fn first_difference(mut parts: impl Iterator<Item = Ordering>) -> Option<Ordering> {
    parts.find(|part| part.is_ne())
}

fn objects(a: &Map<String, Value>, b: &Map<String, Value>) -> Ordering {
    let (a, b) = (sorted_entries(a), sorted_entries(b));
    let pairs = a.iter().zip(&b);
    first_difference(
        pairs.map(|((name, value), (other_name, other))| {
            name.cmp(other_name).then_with(|| compare(value, other))
        }),
    )
    .unwrap_or_else(|| a.len().cmp(&b.len()))
}

fn numbers(a: &Number, b: &Number) -> Ordering {
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(a), None) => integer_to_float(a, float(b)),
        (None, Some(b)) => integer_to_float(b, float(a)).reverse(),
        (None, None) => float(a).total_cmp(&float(b)),
    }
}

fn integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

fn float(number: &Number) -> f64 {
    // Adding zero turns minus zero into zero; the two are one number.
    number.as_f64().unwrap_or(f64::NAN) + 0.0
}

fn integer_to_float(integer: i128, float: f64) -> Ordering {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float beyond the range becomes its end, which is beyond every JSON integer too"
    )]
    let whole = float.trunc() as i128;
    integer.cmp(&whole).then_with(|| 0.0_f64.total_cmp(&(float.fract() + 0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_type_has_its_rank() {
        let ascending = [
            json!(null),
            json!(false),
            json!(true),
            json!(-1e300),
            json!(i64::MIN),
            json!(-1),
            json!(-0.5),
            json!(0),
            json!(0.5),
            json!(1),
            json!(9_007_199_254_740_992.0_f64),
            json!(9_007_199_254_740_993_i64),
            json!(u64::MAX),
            json!(18_446_744_073_709_551_616.0_f64),
            json!(1e300),
            json!(""),
            json!("a"),
            json!("é"),
            json!([]),
            json!([1]),
            json!([1, 2]),
            json!([2]),
            json!({}),
            json!({"a": 1}),
            json!({"a": 1, "b": 1}),
            json!({"a": 2}),
            json!({"b": 0}),
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(compare(a, b), i.cmp(&j), "{a} and {b}");
            }
        }
    }

    #[test]
    fn one_number_has_several_spellings() {
        for (a, b) in [
            (json!(1), json!(1.0)),
            (json!(0), json!(-0.0)),
            (json!(0.0), json!(-0.0)),
            (json!(9_007_199_254_740_992_i64), json!(9_007_199_254_740_992.0_f64)),
            (json!([{"a": 1}]), json!([{"a": 1.0}])),
        ] {
            assert_eq!(compare(&a, &b), Ordering::Equal, "{a} and {b}");
        }
    }
}
