//! A text with references in it: a URL, a header, the value of a variable, a prompt.
//!
//! Every `${` must be one of ours, because no shell reads the others. A value is inserted as it is and
//! never parsed, so one that looks like a reference stays what it is. `raw:` changes nothing here.

use super::names::KnownNames;
use super::reader::{BraceReading, Dollar, MOST_ERRORS, ReferenceReader, TemplateLanguage};
use super::reference::{Reference, TemplateValues, ValueError};
use crate::workflow::cursor::Cursor;
use crate::workflow::filter::SyntaxError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextTemplate {
    pieces: Vec<TextPiece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TextPiece {
    Text(String),
    Reference(Reference),
}

impl TextTemplate {
    /// The text, if it has no references.
    pub fn plain(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [] => Some(""),
            [TextPiece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The errors are in the order of the text, at most a thousand.
    pub fn parse(text: &str, names: &KnownNames<'_>) -> Result<Self, Vec<SyntaxError>> {
        let reader = ReferenceReader::new(names, TemplateLanguage::Text);
        let mut cursor = Cursor::new(text);
        let mut pieces = vec![];
        let mut plain = String::new();
        let mut errors = vec![];
        while errors.len() < MOST_ERRORS
            && let Some(c) = cursor.peek()
        {
            let dollar = Dollar::at(&cursor);
            if c != '$' {
                plain.push(c);
                cursor.bump();
            } else if dollar != Dollar::Brace {
                plain.push_str(dollar.plain_text());
                cursor.skip(dollar.length());
            } else {
                match reader.read(&mut cursor) {
                    BraceReading::Ours(reference, _) => {
                        if !plain.is_empty() {
                            pieces.push(TextPiece::Text(std::mem::take(&mut plain)));
                        }
                        pieces.push(TextPiece::Reference(reference));
                    }
                    BraceReading::Refused(error) => errors.push(error),
                    BraceReading::Foreign => cursor.skip(dollar.length()),
                }
            }
        }
        if !plain.is_empty() {
            pieces.push(TextPiece::Text(plain));
        }
        if errors.is_empty() {
            pieces.shrink_to_fit();
            Ok(Self { pieces })
        } else {
            Err(errors)
        }
    }

    /// Fails on the first value that is missing, too large or contains a NUL character.
    pub fn render(&self, values: &dyn TemplateValues) -> Result<String, ValueError> {
        self.filled(|reference, text| reference.argument_in(values).map(|value| text.push_str(&value)))
    }

    /// For the body of a request: values may have any size. Fails on the first missing value.
    pub fn render_body(&self, values: &dyn TemplateValues) -> Result<String, ValueError> {
        self.filled(|reference, text| reference.text_in(values).map(|value| text.push_str(&value)))
    }

    /// A value behind the scheme is percent-encoded, so that it is one piece of the address, unless it
    /// is `${raw:…}`. Fails like [`Self::render`].
    pub fn render_url(&self, values: &dyn TemplateValues) -> Result<String, ValueError> {
        self.filled(|reference, url| {
            let text = reference.argument_in(values)?;
            if url.contains("://") && !reference.is_raw() {
                push_encoded(url, &text);
            } else {
                url.push_str(&text);
            }
            Ok(())
        })
    }

    /// In the order of the text; one that is written twice comes twice.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.pieces.iter().filter_map(|piece| match piece {
            TextPiece::Reference(reference) => Some(reference),
            TextPiece::Text(_) => None,
        })
    }

    /// The reference, if it is the whole text.
    pub(super) fn only_reference(&self) -> Option<&Reference> {
        match self.pieces.as_slice() {
            [TextPiece::Reference(reference)] => Some(reference),
            _ => None,
        }
    }

    fn filled(
        &self,
        push: impl Fn(&Reference, &mut String) -> Result<(), ValueError>,
    ) -> Result<String, ValueError> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                TextPiece::Text(plain) => text.push_str(plain),
                TextPiece::Reference(reference) => push(reference, &mut text)?,
            }
        }
        Ok(text)
    }
}

/// Percent-encodes all but the unreserved characters of RFC 3986.
pub(crate) fn push_encoded(url: &mut String, text: &str) {
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
