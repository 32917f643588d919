//! A filter as a tree, and its evaluation for an item.
//!
//! Evaluation cannot fail and copies no value: a missing field is null, and values of different types
//! are different. The parser bounds the depth of a tree, so recursion is safe.

use serde_json::Value;

use super::field_path::FieldPath;
use super::lookup::holds;
use super::order::{compare, same_type};
use super::token::Comparison;

static NULL: Value = Value::Null;
static TRUE: Value = Value::Bool(true);
static FALSE: Value = Value::Bool(false);

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Path(FieldPath),
    Literal(Value),
    Not(Box<Expression>),
    All(Vec<Expression>),
    Any(Vec<Expression>),
    Compare(Comparison, Box<[Expression; 2]>),
    /// The first contains the second.
    Contains(Box<[Expression; 2]>),
}

impl Expression {
    /// A value alone holds unless it is missing, null or false.
    pub(super) fn holds_for(&self, item: &Value) -> bool {
        match self {
            Self::Path(_) | Self::Literal(_) => !matches!(self.value(item), Value::Null | Value::Bool(false)),
            Self::Not(inner) => !inner.holds_for(item),
            Self::All(parts) => parts.iter().all(|part| part.holds_for(item)),
            Self::Any(parts) => parts.iter().any(|part| part.holds_for(item)),
            Self::Compare(comparison, sides) => {
                let [left, right] = sides.as_ref();
                related(*comparison, left.value(item), right.value(item))
            }
            Self::Contains(sides) => {
                let [container, sought] = sides.as_ref();
                holds(container.value(item), sought.value(item))
            }
        }
    }

    fn value<'v>(&'v self, item: &'v Value) -> &'v Value {
        match self {
            Self::Path(path) => path.get(item).unwrap_or(&NULL),
            Self::Literal(value) => value,
            _ if self.holds_for(item) => &TRUE,
            _ => &FALSE,
        }
    }
}

fn related(comparison: Comparison, left: &Value, right: &Value) -> bool {
    let order = compare(left, right);
    // Nothing is more or less than null: an item without the field is not "below 5".
    let ordered = same_type(left, right) && !left.is_null();
    match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => ordered && order.is_lt(),
        Comparison::AtMost => ordered && order.is_le(),
        Comparison::Greater => ordered && order.is_gt(),
        Comparison::AtLeast => ordered && order.is_ge(),
    }
}
