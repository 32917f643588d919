//! Splits the text of a filter into tokens.
//!
//! It knows spelling, not grammar. Operators of other languages (`=`, `&`, `<>`, typographic quotes)
//! are refused here with the one to use, because only here can they be recognised.

use super::cursor::{Cursor, begins_name, shown};
use super::field_path::FieldPath;
use super::number::number;
use super::quoted::quoted;
use super::syntax_error::SyntaxError;
use super::token::{Comparison, Located, Token};
use serde_json::Value;

/// The signs, longest first where one begins another.
const SIGNS: [(&str, Token); 14] = [
    ("==", Token::Compare(Comparison::Equal)),
    ("!=", Token::Compare(Comparison::NotEqual)),
    ("<=", Token::Compare(Comparison::AtMost)),
    (">=", Token::Compare(Comparison::AtLeast)),
    ("<", Token::Compare(Comparison::Less)),
    (">", Token::Compare(Comparison::Greater)),
    ("||", Token::Or),
    ("&&", Token::And),
    ("!", Token::Bang),
    ("(", Token::OpenParenthesis),
    (")", Token::CloseParenthesis),
    ("[", Token::OpenBracket),
    ("]", Token::CloseBracket),
    (",", Token::Comma),
];

/// Operators of other languages, and what to write here.
const FOREIGN: [(&str, &str); 9] = [
    ("===", "write `==`"),
    ("!==", "write `!=`"),
    ("<>", "write `!=`"),
    ("=<", "write `<=`"),
    ("=>", "write `>=`"),
    ("=~", "there are no patterns; `contains` looks for a piece of text"),
    ("=", "write `==`"),
    ("&", "write `&&`"),
    ("|", "write `||`"),
];

#[derive(Debug)]
pub(super) struct Lexer<'t> {
    cursor: Cursor<'t>,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { cursor: Cursor::new(text) }
    }

    /// At the end always [`Token::End`].
    pub(super) fn next(&mut self) -> Result<Located, SyntaxError> {
        self.cursor.skip_blank();
        let start = self.cursor.at();
        let token = match self.cursor.peek() {
            None => Token::End,
            Some('\'' | '"') => Token::Literal(Value::String(quoted(&mut self.cursor)?)),
            Some('-' | '0'..='9') => Token::Literal(Value::Number(number(&mut self.cursor)?)),
            Some(first) if begins_name(first) => self.word()?,
            Some(first) => self.sign(first)?,
        };
        let range = self.cursor.since(start);
        Ok(Located { token, range })
    }

    fn word(&mut self) -> Result<Token, SyntaxError> {
        let mut ahead = self.cursor;
        if let Some(token) = Token::of_word(ahead.name()) {
            self.cursor = ahead;
            return Ok(token);
        }
        FieldPath::read(&mut self.cursor).map(Token::Path)
    }

    fn sign(&mut self, first: char) -> Result<Token, SyntaxError> {
        let start = self.cursor.at();
        let mut after = self.cursor;
        if let Some((sign, help)) = FOREIGN.iter().find(|(sign, _)| foreign(&mut after, sign)) {
            let error = SyntaxError::new(after.since(start), format!("`{sign}` is no operator"));
            return Err(error.help(*help));
        }
        let mut signs = SIGNS.into_iter();
        if let Some((_, token)) = signs.find(|(sign, _)| self.cursor.eat(sign)) {
            return Ok(token);
        }
        let sign = shown(first.encode_utf8(&mut [0; 4]));
        let message = format!("{sign} means nothing here");
        let error = SyntaxError::new(self.cursor.next_range(), message);
        Err(match first {
            '“' | '”' | '‘' | '’' | '`' | '«' | '»' => {
                error.help("text stands in straight quotes: 'text' or \"text\"")
            }
            '.' if matches!(self.cursor.peek_second(), Some('0'..='9')) => {
                error.help("write `0.5`, not `.5`")
            }
            '.' => error.help("a field whose name is a word of this language: `item.in`"),
            '$' | '@' => error.help("the item is `item`, its field `item.name`"),
            '{' | '}' => error.help("there are no objects here; compare their fields"),
            '+' | '*' | '/' | '%' => error.help("there is no arithmetic here"),
            _ => error,
        })
    }
}

/// Whether the foreign operator comes next. Ours that begin with one (`==`) are let through.
fn foreign(after: &mut Cursor<'_>, sign: &str) -> bool {
    let mut ours = *after;
    if matches!(sign, "=" | "&" | "|") && ["==", "&&", "||"].iter().any(|sign| ours.eat(sign)) {
        return false;
    }
    after.eat(sign)
}
