//! The word being read, as far as it matters for what follows, and its literal beginning.
//!
//! A word may be a keyword (`case` changes what a `)` means), an assignment, or end in a subscript that
//! some shells evaluate. Only a word without quotes or expansions can be a keyword. For the name of a
//! command quotes do not matter: the shell takes `\eval`, `'eval'` and `eval` for the same command.

use crate::workflow::cursor::Cursor;

/// No keyword or operator that matters is longer.
const MOST_KEPT: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WordShape {
    /// Nothing, or a name.
    Name,
    /// A name and `+`, perhaps of `+=`.
    Plus,
    /// In brackets behind a name, so many deep.
    Subscript(usize),
    /// Behind a name and `=`.
    Assignment,
    Other,
}

#[derive(Debug)]
pub(super) struct Word<'t> {
    kept: String,
    whole: bool,
    last: Option<char>,
    shape: WordShape,
    /// References placed before it.
    pub(super) first_reference: usize,
    pub(super) start: Cursor<'t>,
}

impl<'t> Word<'t> {
    pub(super) fn new(first_reference: usize, start: Cursor<'t>) -> Self {
        Self { kept: String::new(), whole: true, last: None, shape: WordShape::Name, first_reference, start }
    }

    /// `c` is not quoted. In the list of an array a word may begin with a subscript.
    pub(super) fn push(&mut self, c: char, in_array: bool) {
        let empty = self.last.is_none() && self.kept.is_empty();
        self.shape = match (self.shape, c) {
            (WordShape::Name, '_' | 'a'..='z' | 'A'..='Z') | (WordShape::Subscript(1), ']') => {
                WordShape::Name
            }
            (WordShape::Name, '0'..='9') if !empty => WordShape::Name,
            (WordShape::Name, '[') if !empty || in_array => WordShape::Subscript(1),
            (WordShape::Name, '+') if !empty => WordShape::Plus,
            (WordShape::Name | WordShape::Plus, '=') if !empty => WordShape::Assignment,
            (WordShape::Subscript(depth), ']') => WordShape::Subscript(depth.saturating_sub(1)),
            (WordShape::Subscript(depth), '[') => WordShape::Subscript(depth.saturating_add(1)),
            (kept @ (WordShape::Subscript(_) | WordShape::Assignment), _) => kept,
            _ => WordShape::Other,
        };
        if self.kept.len() < MOST_KEPT {
            self.kept.push(c);
        } else {
            self.whole = false;
        }
        self.last = Some(c);
    }

    /// Adds something quoted or expanded.
    pub(super) fn push_quoted(&mut self) {
        self.whole = false;
        self.last = None;
        if !matches!(self.shape, WordShape::Subscript(_) | WordShape::Assignment) {
            self.shape = WordShape::Other;
        }
    }

    /// Empty if it cannot be a keyword.
    pub(super) fn keyword(&self) -> &str {
        if self.whole { &self.kept } else { "" }
    }

    /// Whether it is a file descriptor before a redirection.
    pub(super) fn is_number(&self) -> bool {
        let keyword = self.keyword();
        !keyword.is_empty() && keyword.chars().all(|c| c.is_ascii_digit())
    }

    /// Whether a `(` directly behind it begins a list of words: an array, or a pattern of bash.
    pub(super) fn opens_words(&self) -> bool {
        match self.last {
            Some('=') => self.is_assignment(),
            // `!` alone negates, and a subshell follows.
            Some('?' | '*' | '+' | '@' | '!') => self.keyword() != "!",
            _ => false,
        }
    }

    pub(super) fn is_assignment(&self) -> bool {
        self.shape == WordShape::Assignment
    }

    pub(super) fn in_subscript(&self) -> bool {
        matches!(self.shape, WordShape::Subscript(_))
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct LiteralPrefix {
    /// Without quotes.
    pub(super) text: String,
    pub(super) rest: AfterLiteral,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterLiteral {
    /// It is the whole word.
    Nothing,
    /// A parenthesis: the list of an array, or a pattern of bash.
    Parenthesis,
    Unknown,
}

impl LiteralPrefix {
    /// Reads the word to its end or to the first expansion, reference or parenthesis, whose result is
    /// not known before the text runs. So each character is read for one word at most.
    pub(super) fn read(mut cursor: Cursor<'_>, end: usize, reference: Option<usize>) -> Self {
        let mut text = String::new();
        let mut quote = None;
        let until = reference.unwrap_or(end);
        let rest = loop {
            cursor.settle();
            if cursor.at() >= until {
                break match reference {
                    Some(_) => AfterLiteral::Unknown,
                    None => AfterLiteral::Nothing,
                };
            }
            let Some(c) = cursor.bump() else {
                break AfterLiteral::Nothing;
            };
            match (quote, c) {
                (None, '\'' | '"') => quote = Some(c),
                (Some(open), _) if open == c => quote = None,
                (Some('\''), _) => text.push(c),
                (_, '$' | '`') => break AfterLiteral::Unknown,
                (None, '(') => break AfterLiteral::Parenthesis,
                (None, '\\') => text.extend(cursor.bump()),
                (Some(_), '\\') if matches!(cursor.peek(), Some('"' | '\\' | '$' | '`')) => {
                    text.extend(cursor.bump());
                }
                _ => text.push(c),
            }
            cursor.set_joins(quote != Some('\''));
        };
        Self { text, rest }
    }

    /// `None` if only a part of the word is literal.
    pub(super) fn whole(&self) -> Option<&str> {
        (self.rest == AfterLiteral::Nothing).then_some(self.text.as_str())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(word: &str) -> (String, AfterLiteral) {
        let mut cursor = Cursor::new(word);
        cursor.set_joins(true);
        let literal = LiteralPrefix::read(cursor, word.len(), None);
        (literal.text, literal.rest)
    }

    #[test]
    fn quotes_are_taken_off() {
        for word in ["eval", "\\eval", "'eval'", "\"ev\"'a'l", "ev\\\nal"] {
            assert_eq!(read(word), ("eval".to_owned(), AfterLiteral::Nothing), "{word}");
        }
        for (word, text) in
            [(r"'a\b$c`(' ", r"a\b$c`( "), (r#""a\"b\c'(""#, r#"a"b\c'("#), ("'a\\\nb'", "a\\\nb"), ("", "")]
        {
            assert_eq!(read(word), (text.to_owned(), AfterLiteral::Nothing), "{word}");
        }
    }

    #[test]
    fn reading_ends_at_what_is_not_known() {
        for (word, text, rest) in [
            ("a$b", "a", AfterLiteral::Unknown),
            ("\"a $(b)\"", "a ", AfterLiteral::Unknown),
            ("`a`", "", AfterLiteral::Unknown),
            ("a=(b)", "a=", AfterLiteral::Parenthesis),
        ] {
            assert_eq!(read(word), (text.to_owned(), rest), "{word}");
        }
        let literal = LiteralPrefix::read(Cursor::new("'a${item}'"), 10, Some(2));
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
            let literal = LiteralPrefix::read(Cursor::new(word), word.len(), None);
            assert_eq!(literal.is_assignment(), expected, "{word}");
        }
    }
}
