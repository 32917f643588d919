//! The grammar of a filter.
//!
//! ```text
//! any      = all ("||" all)*
//! all      = negation ("&&" negation)*
//! negation = "not" (negation | relation) | "!" (negation | operand) | relation
//! relation = operand [("==" | "!=" | "<" | "<=" | ">" | ">=" | ["not"] "in" | ["not"] "contains") operand]
//! operand  = path | literal | "[" [literal ("," literal)*] "]" | "(" any ")" | "contains" "(" any "," any ")"
//! ```
//!
//! The parser looks one token ahead and reads nothing twice, so parsing is linear; it counts nesting, so
//! neither parsing nor evaluation can exhaust the stack. Text that other languages read
//! differently (`!a == b`, `1 < a < 5`) is refused.

use std::mem;
use std::ops::Range;

use serde_json::Value;

use super::expression::Expression;
use super::lexer::{FilterToken, LocatedToken, next_token};
use super::syntax_error::{SyntaxError, quote, refuse_long};
use crate::workflow::cursor::Cursor;

/// How deep parentheses, lists and negations may be nested.
const DEEPEST: usize = 100;

pub(super) fn parse(text: &str) -> Result<Expression, SyntaxError> {
    refuse_long(text)?;
    let mut cursor = Cursor::new(text);
    let next = next_token(&mut cursor)?;
    if next.token == FilterToken::End {
        let error = SyntaxError::new(0..text.len(), "the filter is empty");
        return Err(error.help("remove it to take every item"));
    }
    let mut parser = FilterParser { text, cursor, next, depth: 0 };
    let expression = parser.any()?;
    match parser.next.token {
        FilterToken::End => Ok(expression),
        _ => Err(parser.unexpected("`&&`, `||` or the end")),
    }
}

struct FilterParser<'t> {
    text: &'t str,
    cursor: Cursor<'t>,
    next: LocatedToken,
    depth: usize,
}

impl FilterParser<'_> {
    fn any(&mut self) -> Result<Expression, SyntaxError> {
        let mut parts = vec![self.all()?];
        while self.eat(&FilterToken::Or)? {
            parts.push(self.all()?);
        }
        Ok(alone(parts, Expression::Any))
    }

    fn all(&mut self) -> Result<Expression, SyntaxError> {
        let mut parts = vec![self.negation()?];
        while self.eat(&FilterToken::And)? {
            parts.push(self.negation()?);
        }
        Ok(alone(parts, Expression::All))
    }

    fn negation(&mut self) -> Result<Expression, SyntaxError> {
        let bang = self.next.token == FilterToken::Bang;
        if !bang && self.next.token != FilterToken::Not {
            return self.relation();
        }
        let sign = self.advance()?.range;
        let inner = self.nested(&sign, |parser| match parser.next.token {
            FilterToken::Bang | FilterToken::Not => parser.negation(),
            _ if bang => parser.operand(),
            _ => parser.relation(),
        })?;
        if bang && self.next.token.is_relation() {
            let error = SyntaxError::new(sign, "`!` before a comparison needs parentheses");
            return Err(error.help("write `!(a == b)` to negate the whole comparison"));
        }
        Ok(Expression::Not(Box::new(inner)))
    }

    fn relation(&mut self) -> Result<Expression, SyntaxError> {
        let left = self.operand()?;
        let negated = self.eat(&FilterToken::Not)?;
        let expression = match self.next.token {
            FilterToken::Compare(comparison) if !negated => {
                self.advance()?;
                let right = self.operand()?;
                Expression::Compare(comparison, Box::new([left, right]))
            }
            FilterToken::Contains => {
                self.advance()?;
                let right = self.operand()?;
                Expression::Contains(Box::new([left, right]))
            }
            FilterToken::In => {
                self.advance()?;
                let right = self.operand()?;
                Expression::Contains(Box::new([right, left]))
            }
            _ if negated => return Err(self.unexpected("`in` or `contains` after `not`")),
            _ => return Ok(left),
        };
        if self.next.token.is_relation() {
            let error = SyntaxError::new(self.next.range.clone(), "comparisons cannot be chained");
            return Err(error.help("write `1 < a && a < 5`, or use parentheses"));
        }
        if negated {
            return Ok(Expression::Not(Box::new(expression)));
        }
        Ok(expression)
    }

    fn operand(&mut self) -> Result<Expression, SyntaxError> {
        match self.next.token {
            FilterToken::OpenBracket => self.list().map(Expression::Literal),
            FilterToken::OpenParenthesis => {
                let open = self.advance()?.range;
                self.nested(&open, |parser| {
                    let inner = parser.any()?;
                    parser.expect(&FilterToken::CloseParenthesis, "`)`")?;
                    Ok(inner)
                })
            }
            FilterToken::Contains => self.contains_call(),
            FilterToken::Path(_) | FilterToken::Literal(_) => {
                let LocatedToken { token, range } = self.advance()?;
                match token {
                    FilterToken::Path(_) if self.next.token == FilterToken::OpenParenthesis => {
                        Err(self.unknown_function(range))
                    }
                    FilterToken::Path(path) => Ok(Expression::Path(path)),
                    FilterToken::Literal(value) => Ok(Expression::Literal(value)),
                    _ => Err(self.unexpected("a value")),
                }
            }
            _ => Err(self.unexpected("a field or a value")),
        }
    }

    fn contains_call(&mut self) -> Result<Expression, SyntaxError> {
        let name = self.advance()?.range;
        if self.next.token != FilterToken::OpenParenthesis {
            let error = SyntaxError::new(name, "`contains` needs a value before it");
            return Err(error
                .help("write `a contains b` or `contains(a, b)`; a field of that name is `item.contains`"));
        }
        self.advance()?;
        self.nested(&name, |parser| {
            let container = parser.any()?;
            parser.expect(&FilterToken::Comma, "`,`")?;
            let sought = parser.any()?;
            parser.expect(&FilterToken::CloseParenthesis, "`)`")?;
            Ok(Expression::Contains(Box::new([container, sought])))
        })
    }

    fn list(&mut self) -> Result<Value, SyntaxError> {
        let open = self.advance()?.range;
        self.nested(&open, |parser| {
            let mut elements = vec![];
            while parser.next.token != FilterToken::CloseBracket {
                elements.push(parser.element()?);
                if !parser.eat(&FilterToken::Comma)? {
                    break;
                }
            }
            parser.expect(&FilterToken::CloseBracket, "`,` or `]`")?;
            Ok(Value::Array(elements))
        })
    }

    fn element(&mut self) -> Result<Value, SyntaxError> {
        match self.next.token {
            FilterToken::OpenBracket => self.list(),
            FilterToken::Literal(_) => match self.advance()?.token {
                FilterToken::Literal(value) => Ok(value),
                _ => Err(self.unexpected("a value")),
            },
            FilterToken::Path(_) => {
                let message = "a list can hold only values, not fields";
                let error = SyntaxError::new(self.next.range.clone(), message);
                Err(error.help("write text in quotes: ['open', 'closed']"))
            }
            _ => Err(self.unexpected("a value")),
        }
    }

    /// Takes the next token and reads the one after it.
    fn advance(&mut self) -> Result<LocatedToken, SyntaxError> {
        let following = next_token(&mut self.cursor)?;
        Ok(mem::replace(&mut self.next, following))
    }

    fn eat(&mut self, token: &FilterToken) -> Result<bool, SyntaxError> {
        let found = self.next.token == *token;
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, token: &FilterToken, called: &str) -> Result<(), SyntaxError> {
        if self.eat(token)? {
            return Ok(());
        }
        Err(self.unexpected(called))
    }

    fn nested<T>(
        &mut self,
        opened_by: &Range<usize>,
        read: impl FnOnce(&mut Self) -> Result<T, SyntaxError>,
    ) -> Result<T, SyntaxError> {
        self.depth = self.depth.saturating_add(1);
        if self.depth > DEEPEST {
            let message = format!("the filter is nested more than {DEEPEST} levels deep");
            return Err(SyntaxError::new(opened_by.clone(), message));
        }
        let read = read(self)?;
        self.depth = self.depth.saturating_sub(1);
        Ok(read)
    }

    fn unexpected(&self, expected: &str) -> SyntaxError {
        let found = match &self.next.token {
            FilterToken::End => "the end".to_owned(),
            _ => quote(self.piece(&self.next.range)),
        };
        let message = format!("expected {expected}, found {found}");
        SyntaxError::new(self.next.range.clone(), message)
    }

    fn unknown_function(&self, name: Range<usize>) -> SyntaxError {
        let message = format!("unknown function {}", quote(self.piece(&name)));
        SyntaxError::new(name, message)
            .help("the only function is `contains(a, b)`; write `a == null` to test for a missing field")
    }

    fn piece(&self, range: &Range<usize>) -> &str {
        self.text.get(range.clone()).unwrap_or_default()
    }
}

/// A single part is not wrapped.
fn alone(mut parts: Vec<Expression>, around: fn(Vec<Expression>) -> Expression) -> Expression {
    match (parts.pop(), parts.is_empty()) {
        (Some(only), true) => only,
        (last, _) => {
            parts.extend(last);
            around(parts)
        }
    }
}
