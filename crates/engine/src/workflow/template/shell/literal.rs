//! The literal beginning of a word, as its command gets it.
//!
//! The shell takes `\eval`, `'eval'` and `eval` for the same command, so the quotes are removed. Reading
//! ends at the first expansion, reference or parenthesis, whose result is not known before the text
//! runs. So each character is read for one word at most.

use crate::workflow::template::cursor::{Cursor, Token};

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Literal {
    /// Without quotes.
    pub(super) text: String,
    pub(super) rest: Rest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// It is the whole word.
    Nothing,
    /// A parenthesis: the list of an array, or a pattern of bash.
    Parenthesis,
    Unknown,
}

impl Literal {
    /// Reads the word to its end, or to its first reference.
    pub(super) fn read(mut cursor: Cursor<'_>, end: usize, reference: Option<usize>) -> Self {
        let mut text = String::new();
        let mut quote = None;
        let until = reference.unwrap_or(end);
        let rest = loop {
            cursor.settle();
            if cursor.at() >= until {
                break match reference {
                    Some(_) => Rest::Unknown,
                    None => Rest::Nothing,
                };
            }
            let Some(Token::Char(c)) = cursor.bump() else {
                break Rest::Nothing;
            };
            match (quote, c) {
                (None, '\'' | '"') => quote = Some(c),
                (Some(open), _) if open == c => quote = None,
                (Some('\''), _) => text.push(c),
                (_, '$' | '`') => break Rest::Unknown,
                (None, '(') => break Rest::Parenthesis,
                (None, '\\') => text.extend(hidden(&mut cursor)),
                (Some(_), '\\') if matches!(cursor.peek_char(), Some('"' | '\\' | '$' | '`')) => {
                    text.extend(hidden(&mut cursor));
                }
                _ => text.push(c),
            }
            cursor.set_joins(quote != Some('\''));
        };
        Self { text, rest }
    }

    /// `None` if only a part of the word is literal.
    pub(super) fn whole(&self) -> Option<&str> {
        (self.rest == Rest::Nothing).then_some(self.text.as_str())
    }

    /// Whether it begins with the name of a variable, perhaps a subscript, and `=`.
    pub(super) fn is_assignment(&self) -> bool {
        let Some((name, _)) = self.text.split_once('=') else {
            return false;
        };
        let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
        let goes_on = |c: char| c.is_ascii_alphanumeric() || "_[]+".contains(c);
        name.starts_with(begins) && name.chars().all(goes_on)
    }
}

fn hidden(cursor: &mut Cursor<'_>) -> Option<char> {
    let c = cursor.peek_char();
    cursor.bump();
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(word: &str) -> (String, Rest) {
        let mut cursor = Cursor::new(word);
        cursor.set_joins(true);
        let literal = Literal::read(cursor, word.len(), None);
        (literal.text, literal.rest)
    }

    #[test]
    fn quotes_are_taken_off() {
        for word in ["eval", "\\eval", "'eval'", "\"ev\"'a'l", "ev\\\nal"] {
            assert_eq!(read(word), ("eval".to_owned(), Rest::Nothing), "{word}");
        }
        for (word, text) in
            [(r"'a\b$c`(' ", r"a\b$c`( "), (r#""a\"b\c'(""#, r#"a"b\c'("#), ("'a\\\nb'", "a\\\nb"), ("", "")]
        {
            assert_eq!(read(word), (text.to_owned(), Rest::Nothing), "{word}");
        }
    }

    #[test]
    fn reading_ends_at_what_is_not_known() {
        for (word, text, rest) in [
            ("a$b", "a", Rest::Unknown),
            ("\"a $(b)\"", "a ", Rest::Unknown),
            ("`a`", "", Rest::Unknown),
            ("a=(b)", "a=", Rest::Parenthesis),
        ] {
            assert_eq!(read(word), (text.to_owned(), rest), "{word}");
        }
        let literal = Literal::read(Cursor::new("'a${item}'"), 10, Some(2));
        assert_eq!((literal.text.as_str(), literal.whole()), ("a", None));
    }

    #[test]
    fn an_assignment_has_its_name_written_out() {
        for (word, expected) in [
            ("a=", true),
            ("\"a_1=b $c\"", true),
            ("a+=$b", true),
            ("a[0]=$b", true),
            ("a$b=c", false),
            ("$a=b", false),
            ("=b", false),
            ("1a=b", false),
            ("a", false),
        ] {
            let literal = Literal::read(Cursor::new(word), word.len(), None);
            assert_eq!(literal.is_assignment(), expected, "{word}");
        }
    }
}
