//! A filter: a yes-or-no question about one item, as a tree, and its evaluation.
//!
//! Parsing finds everything that can be wrong. Evaluation cannot fail and copies no value: a missing
//! field is null, and values of different types are different. The parser bounds the depth of a tree, so
//! recursion is safe.

use serde_json::Value;

use super::field_path::FieldPath;
use super::lexer::ComparisonOperator;
use super::order::{compare, same_type};
use super::parser;
use super::syntax_error::SyntaxError;

static NULL: Value = Value::Null;
static TRUE: Value = Value::Bool(true);
static FALSE: Value = Value::Bool(false);

/// A checked `filter:` or `--where`.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter(Expression);

impl Filter {
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        parser::parse(text).map(Self)
    }

    pub fn matches(&self, item: &Value) -> bool {
        self.0.holds_for(item)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Path(FieldPath),
    Literal(Value),
    Not(Box<Expression>),
    All(Vec<Expression>),
    Any(Vec<Expression>),
    Compare(ComparisonOperator, Box<[Expression; 2]>),
    /// The first contains the second.
    Contains(Box<[Expression; 2]>),
}

impl Expression {
    /// A value alone holds unless it is missing, null or false.
    fn holds_for(&self, item: &Value) -> bool {
        match self {
            Self::Path(_) | Self::Literal(_) => !matches!(self.value(item), Value::Null | Value::Bool(false)),
            Self::Not(inner) => !inner.holds_for(item),
            Self::All(parts) => parts.iter().all(|part| part.holds_for(item)),
            Self::Any(parts) => parts.iter().any(|part| part.holds_for(item)),
            Self::Compare(operator, sides) => {
                let [left, right] = sides.as_ref();
                related(*operator, left.value(item), right.value(item))
            }
            Self::Contains(sides) => {
                let [container, sought] = sides.as_ref();
                contains(container.value(item), sought.value(item))
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

fn related(operator: ComparisonOperator, left: &Value, right: &Value) -> bool {
    let order = compare(left, right);
    // Nothing is more or less than null: an item without the field is not "below 5".
    let ordered = same_type(left, right) && !left.is_null();
    match operator {
        ComparisonOperator::Equal => order.is_eq(),
        ComparisonOperator::NotEqual => order.is_ne(),
        ComparisonOperator::Less => ordered && order.is_lt(),
        ComparisonOperator::AtMost => ordered && order.is_le(),
        ComparisonOperator::Greater => ordered && order.is_gt(),
        ComparisonOperator::AtLeast => ordered && order.is_ge(),
    }
}

/// Text contains a piece of text, an array an element, an object a key; nothing else contains anything.
fn contains(container: &Value, sought: &Value) -> bool {
    match (container, sought) {
        (Value::String(text), Value::String(piece)) => text.contains(piece.as_str()),
        (Value::Array(elements), _) => elements.iter().any(|element| compare(element, sought).is_eq()),
        (Value::Object(fields), Value::String(key)) => fields.contains_key(key),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
