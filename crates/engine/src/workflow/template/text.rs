//! A text with references in it: a URL, a header, the value of a variable, a prompt.
//!
//! Every `${` must be one of ours, because no shell takes the others. A value is inserted as it is and
//! never parsed, so one that looks like a reference stays what it is. `raw:` changes nothing here.

use super::cursor::{Cursor, Token};
use super::dollar::Dollar;
use super::names::KnownNames;
use super::reader::{Found, Language, Reader};
use super::reference::Reference;
use super::template_error::{MOST_ERRORS, TemplateError};
use super::value::{self, TemplateValues, ValueError};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextTemplate {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Reference(Reference),
}

impl TextTemplate {
    /// The text, if it has no references.
    pub fn plain(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The errors are in the order of the text, at most a thousand.
    pub fn parse(text: &str, names: &KnownNames<'_>) -> Result<Self, Vec<TemplateError>> {
        let reader = Reader::new(names, Language::Text);
        let mut cursor = Cursor::new(text);
        let mut pieces = vec![];
        let mut plain = String::new();
        let mut errors = vec![];
        while errors.len() < MOST_ERRORS
            && let Some(token) = cursor.peek()
        {
            let dollar = Dollar::at(&cursor);
            match (token, dollar) {
                (Token::Char('$'), Dollar::Brace) => match reader.read(&mut cursor) {
                    Found::Ours(reference, _) => {
                        if !plain.is_empty() {
                            pieces.push(Piece::Text(std::mem::take(&mut plain)));
                        }
                        pieces.push(Piece::Reference(reference));
                    }
                    Found::Refused(error) => errors.push(error),
                    Found::Foreign => cursor.skip(dollar.length()),
                },
                (Token::Char('$'), _) => {
                    plain.push_str(if dollar == Dollar::Alone { "$" } else { "$$" });
                    if dollar == Dollar::Literal {
                        plain.pop();
                        plain.push('{');
                    }
                    cursor.skip(dollar.length());
                }
                (Token::Char(c), _) => {
                    plain.push(c);
                    cursor.bump();
                }
                (Token::Backquote(_), _) => cursor.skip(1),
            }
        }
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        if errors.is_empty() {
            pieces.shrink_to_fit();
            Ok(Self { pieces })
        } else {
            Err(errors)
        }
    }

    /// Fails on the first value that is missing, too large or holds a NUL character.
    pub fn render(&self, values: &dyn TemplateValues) -> Result<String, ValueError> {
        self.filled(|reference| value::argument(reference, values))
    }

    /// For the body of a request: values may have any size. Fails on the first missing value.
    pub fn render_body(&self, values: &dyn TemplateValues) -> Result<String, ValueError> {
        self.filled(|reference| Ok(value::text(value::value(reference, values)?)))
    }

    /// A value behind the scheme is percent-encoded, so that it is one piece of the address, unless it
    /// is `${raw:…}`. Fails like [`Self::render`].
    pub fn render_url(&self, values: &dyn TemplateValues) -> Result<String, ValueError> {
        let mut url = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(plain) => url.push_str(plain),
                Piece::Reference(reference) => {
                    let text = value::argument(reference, values)?;
                    if url.contains("://") && !reference.is_raw() {
                        push_encoded(&mut url, &text);
                    } else {
                        url.push_str(&text);
                    }
                }
            }
        }
        Ok(url)
    }

    /// In the order of the text; one that stands twice comes twice.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Reference(reference) => Some(reference),
            Piece::Text(_) => None,
        })
    }

    /// The reference, if the text is nothing else.
    pub(super) fn only_reference(&self) -> Option<&Reference> {
        match self.pieces.as_slice() {
            [Piece::Reference(reference)] => Some(reference),
            _ => None,
        }
    }

    fn filled(
        &self,
        text_of: impl Fn(&Reference) -> Result<String, ValueError>,
    ) -> Result<String, ValueError> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(plain) => text.push_str(plain),
                Piece::Reference(reference) => text.push_str(&text_of(reference)?),
            }
        }
        Ok(text)
    }
}

/// Percent-encodes all but the unreserved characters of RFC 3986.
fn push_encoded(url: &mut String, text: &str) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            url.push(byte.into());
            continue;
        }
        let digits = [byte >> 4, byte & 15].map(|half| HEX.get(usize::from(half)).copied());
        url.push('%');
        url.extend(digits.into_iter().flatten().map(char::from));
    }
}

#[cfg(test)]
mod tests;
