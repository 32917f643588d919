//! The order items are taken in: `item.priority DESC, name`.
//!
//! The position of nulls is separate from the direction, because reversing an order should not bring the
//! items without the field to the front.

use std::borrow::Borrow;
use std::cmp::Ordering;

use serde_json::Value;

use super::field_path::{FieldPath, name};
use super::order::compare;
use super::syntax_error::{SyntaxError, next_word, refuse_long};
use crate::workflow::cursor::Cursor;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortBy(Vec<SortTerm>);

/// Later terms matter only where this one finds no difference.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SortTerm {
    path: FieldPath,
    descending: bool,
    nulls_first: bool,
}

impl SortBy {
    /// Reads paths with commas between them, each followed by `ASC` or `DESC` and `NULLS FIRST` or
    /// `NULLS LAST` to override the default (ascending, nulls last).
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        refuse_long(text)?;
        let mut cursor = Cursor::new(text);
        let mut terms = vec![];
        loop {
            terms.push(term(&mut cursor)?);
            if !cursor.eat(",") {
                break;
            }
        }
        if cursor.peek().is_none() {
            return Ok(Self(terms));
        }
        let found = next_word(&cursor);
        let mut end = cursor;
        name(&mut end);
        let range = cursor.at()..end.at().max(cursor.next_range().end);
        let message = format!("expected `ASC`, `DESC`, `NULLS`, a comma or the end, found {found}");
        Err(SyntaxError::new(range, message))
    }

    /// Missing and null are the same.
    pub fn compare(&self, a: &Value, b: &Value) -> Ordering {
        let paths = self.0.iter().map(|term| &term.path);
        self.first_difference(paths.map(|path| (path.get(a), path.get(b))))
    }

    /// The sort is stable.
    pub(crate) fn sort<V: Borrow<Value>>(&self, items: Vec<V>) -> Vec<V> {
        // Values are looked up once per item, not once per comparison.
        let mut rows: Vec<(Vec<Option<&Value>>, usize)> = items
            .iter()
            .map(|item| self.0.iter().map(|term| term.path.get(item.borrow())))
            .map(Iterator::collect)
            .zip(0..)
            .collect();
        rows.sort_by(|(a, _), (b, _)| self.first_difference(a.iter().copied().zip(b.iter().copied())));
        let places: Vec<usize> = rows.into_iter().map(|(_, place)| place).collect();
        let mut items: Vec<Option<V>> = items.into_iter().map(Some).collect();
        places.into_iter().filter_map(|place| items.get_mut(place)?.take()).collect()
    }

    fn first_difference<'v>(
        &self,
        values: impl Iterator<Item = (Option<&'v Value>, Option<&'v Value>)>,
    ) -> Ordering {
        let mut orders = self.0.iter().zip(values).map(|(term, (a, b))| term.compare(a, b));
        orders.find(|it| it.is_ne()).unwrap_or(Ordering::Equal)
    }
}

impl SortTerm {
    fn compare(&self, a: Option<&Value>, b: Option<&Value>) -> Ordering {
        let present = |value: &&Value| !value.is_null();
        match (a.filter(present), b.filter(present)) {
            (None, None) => Ordering::Equal,
            (Some(a), Some(b)) if self.descending => compare(b, a),
            (Some(a), Some(b)) => compare(a, b),
            (None, Some(_)) if self.nulls_first => Ordering::Less,
            (Some(_), None) if !self.nulls_first => Ordering::Less,
            _ => Ordering::Greater,
        }
    }
}

fn term(cursor: &mut Cursor<'_>) -> Result<SortTerm, SyntaxError> {
    cursor.skip_whitespace();
    let path = FieldPath::read(cursor)?;
    let directions = [("asc", false), ("ascending", false), ("desc", true), ("descending", true)];
    let descending = word(cursor, &directions).unwrap_or_default();
    let mut term = SortTerm { path, descending, nulls_first: false };
    if word(cursor, &[("nulls", ())]).is_some() {
        let first = word(cursor, &[("first", true), ("last", false)]);
        let missing = || SyntaxError::expected("`FIRST` or `LAST` after `NULLS`", cursor);
        term.nulls_first = first.ok_or_else(missing)?;
    }
    Ok(term)
}

/// Reads the next word if it is one of these; whitespace before it is read either way.
fn word<T: Copy>(cursor: &mut Cursor<'_>, meanings: &[(&str, T)]) -> Option<T> {
    cursor.skip_whitespace();
    let mut ahead = *cursor;
    let written = name(&mut ahead);
    let meaning = meanings.iter().find(|(word, _)| written.eq_ignore_ascii_case(word));
    if meaning.is_some() {
        *cursor = ahead;
        cursor.skip_whitespace();
    }
    meaning.map(|(_, meaning)| *meaning)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sorted(order: &str) -> Vec<u64> {
        let mut items = [
            json!({"i": 0, "p": 2, "name": "b"}),
            json!({"i": 1, "p": null}),
            json!({"i": 2, "p": 10, "name": "a"}),
            json!({"i": 3, "name": "c"}),
            json!({"i": 4, "p": 2, "name": "a"}),
            json!({"i": 5, "p": "x"}),
        ];
        let order = SortBy::parse(order).unwrap();
        items.sort_by(|a, b| order.compare(a, b));
        items.iter().map(|item| item["i"].as_u64().unwrap()).collect()
    }

    #[test]
    fn nulls_come_last_in_either_direction_by_default() {
        assert_eq!(sorted("item.p"), [0, 4, 2, 5, 1, 3]);
        assert_eq!(sorted("p DESC"), [5, 2, 0, 4, 1, 3]);
        assert_eq!(sorted("p asc nulls first"), [1, 3, 0, 4, 2, 5]);
        assert_eq!(sorted("p Desc Nulls First"), [1, 3, 5, 2, 0, 4]);
        assert_eq!(sorted("p NULLS LAST"), [0, 4, 2, 5, 1, 3]);
    }

    #[test]
    fn later_terms_decide_where_earlier_ones_do_not() {
        assert_eq!(sorted("p, name"), [4, 0, 2, 5, 3, 1]);
        assert_eq!(sorted("p DESC , name descending"), [5, 2, 0, 4, 3, 1]);
        assert_eq!(sorted("gone"), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_field_may_be_named_like_a_direction() {
        let order = SortBy::parse("desc DESC, nulls, item.asc").unwrap();
        assert_eq!(order.compare(&json!({"desc": 1}), &json!({"desc": 2})), Ordering::Greater);
    }

    #[test]
    fn a_mistake_is_marked_where_it_is() {
        for (text, range, message) in [
            ("", 0..0, "expected the name of a field, found the end"),
            ("a,", 2..2, "expected the name of a field, found the end"),
            ("a, , b", 3..4, "expected the name of a field, found `,`"),
            ("-a", 0..1, "expected the name of a field, found `-a`"),
            ("a down", 2..6, "expected `ASC`, `DESC`, `NULLS`, a comma or the end, found `down`"),
            ("a DESC ASC", 7..10, "expected `ASC`, `DESC`, `NULLS`, a comma or the end, found `ASC`"),
            ("a; b", 1..2, "expected `ASC`, `DESC`, `NULLS`, a comma or the end, found `;`"),
            ("a nulls", 7..7, "expected `FIRST` or `LAST` after `NULLS`, found the end"),
        ] {
            let error = SortBy::parse(text).unwrap_err();
            assert_eq!((error.range, error.message.as_str()), (range, message), "{text}");
        }
    }
}
