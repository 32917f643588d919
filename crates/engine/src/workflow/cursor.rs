//! A cursor over the text of a filter or a template. It only moves forward.
//!
//! It always stands between two characters, so slicing cannot fail, and it knows no grammar. For shell
//! templates it sees the text as the shell does: before the shell runs the text in backquotes, it
//! removes one layer of backslashes, and one more for each backquote inside another. The cursor removes
//! them as it moves, so that its users read plain characters and still know their position.

use std::ops::Range;

/// How deep backquotes may nest; the error recommends `$(…)`.
const MOST_LAYERS: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CursorToken {
    /// With the backslashes of the layers around it removed.
    Char(char),
    /// It ends this layer (counted from 1) and all layers inside it.
    Backquote(usize),
}

/// The quotes around a position. Those around backquotes decide what a backslash escapes inside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuoteContext {
    Bare,
    /// `\"` is a `"` too.
    Double,
    /// In a here-document that is expanded, where shells disagree about `\"`.
    HereDocument,
    Single,
}

/// Copy it to look ahead.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
    joins: bool,
    layers: usize,
    contexts: [QuoteContext; MOST_LAYERS],
}

impl<'t> Cursor<'t> {
    /// A backslash before a line break is an ordinary character until `set_joins`.
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0, joins: false, layers: 0, contexts: [QuoteContext::Bare; MOST_LAYERS] }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn since(&self, start: usize) -> Range<usize> {
        start..self.at
    }

    /// The next character, or the empty range at the end.
    pub(super) fn next_range(&self) -> Range<usize> {
        self.at..self.next().map_or(self.at, |(_, end)| end)
    }

    pub(super) fn move_to_end(&mut self) {
        self.at = self.text.len();
    }

    /// Whether a backslash before a line break joins the lines from here on.
    pub(super) fn set_joins(&mut self, joins: bool) {
        self.joins = joins;
    }

    pub(super) fn in_backquotes(&self) -> bool {
        self.layers > 0
    }

    /// Whether one of the backquotes around it is in a here-document.
    pub(super) fn in_here_document_backquotes(&self) -> bool {
        self.contexts.iter().take(self.layers).any(|context| *context == QuoteContext::HereDocument)
    }

    /// Enters backquotes; `None` if they are nested too deep.
    pub(super) fn open_layer(&mut self, context: QuoteContext) -> Option<usize> {
        *self.contexts.get_mut(self.layers)? = context;
        self.layers = self.layers.saturating_add(1);
        Some(self.layers)
    }

    /// Leaves this layer and all layers inside it.
    pub(super) fn close_layer(&mut self, layer: usize) {
        self.layers = self.layers.min(layer.saturating_sub(1));
    }

    /// Skips line joins, so that the cursor stands at the next character itself.
    pub(super) fn settle(&mut self) {
        while self.joins
            && let Some((CursorToken::Char('\\'), end)) = self.decode(self.at, self.layers)
            && let Some((CursorToken::Char('\n'), after)) = self.decode(end, self.layers)
        {
            self.at = after;
        }
    }

    pub(super) fn peek_token(&self) -> Option<CursorToken> {
        Some(self.next()?.0)
    }

    /// `None` at the end and before a backquote that ends a layer.
    pub(super) fn peek(&self) -> Option<char> {
        character(self.peek_token()?)
    }

    pub(super) fn peek_second(&self) -> Option<char> {
        let mut ahead = *self;
        ahead.bump();
        ahead.peek()
    }

    /// Compares decoded characters.
    pub(super) fn starts_with(&self, expected: &str) -> bool {
        let mut ahead = *self;
        ahead.eat(expected)
    }

    /// Compares the text itself, no backslash removed.
    pub(super) fn is_at(&self, expected: &str) -> bool {
        let rest = self.text.get(self.at..);
        rest.is_some_and(|rest| rest.starts_with(expected))
    }

    /// Passes the next token, even a backquote, which is no character.
    pub(super) fn bump(&mut self) -> Option<char> {
        let (token, end) = self.next()?;
        self.at = end;
        character(token)
    }

    pub(super) fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.bump();
        }
    }

    /// Passes the expected text if it comes next.
    pub(super) fn eat(&mut self, expected: &str) -> bool {
        let mut ahead = *self;
        let found = expected.chars().all(|c| ahead.bump() == Some(c));
        if found {
            *self = ahead;
        }
        found
    }

    pub(super) fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(c) = self.peek().filter(|c| belongs(*c)) {
            taken.push(c);
            self.bump();
        }
        taken
    }

    pub(super) fn skip_whitespace(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.bump();
        }
    }

    fn next(&self) -> Option<(CursorToken, usize)> {
        let mut ahead = *self;
        ahead.settle();
        self.decode(ahead.at, self.layers)
    }

    /// The token at a byte inside so many layers, and where it ends. It recurses once per layer, never
    /// per character.
    fn decode(&self, mut at: usize, layer: usize) -> Option<(CursorToken, usize)> {
        let Some(outer) = layer.checked_sub(1) else {
            let c = self.text.get(at..)?.chars().next()?;
            return Some((CursorToken::Char(c), at.saturating_add(c.len_utf8())));
        };
        loop {
            let (token, end) = self.decode(at, outer)?;
            match token {
                CursorToken::Char('`') => return Some((CursorToken::Backquote(layer), end)),
                CursorToken::Char('\\') => {}
                other => return Some((other, end)),
            }
            match self.decode(end, outer) {
                Some((CursorToken::Char('\n'), after)) => at = after,
                Some((CursorToken::Char(c), after)) if self.escapes(outer, c) => {
                    return Some((CursorToken::Char(c), after));
                }
                _ => return Some((CursorToken::Char('\\'), end)),
            }
        }
    }

    fn escapes(&self, layer: usize, c: char) -> bool {
        let double = || self.contexts.get(layer) == Some(&QuoteContext::Double);
        matches!(c, '\\' | '`' | '$') || (c == '"' && double())
    }
}

fn character(token: CursorToken) -> Option<char> {
    match token {
        CursorToken::Char(c) => Some(c),
        CursorToken::Backquote(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(mut cursor: Cursor<'_>) -> Vec<CursorToken> {
        let next = || {
            let token = cursor.peek_token();
            cursor.bump();
            token
        };
        std::iter::from_fn(next).collect()
    }

    fn chars(text: &str) -> Vec<CursorToken> {
        text.chars().map(CursorToken::Char).collect()
    }

    #[test]
    fn a_plain_text_is_its_characters() {
        assert_eq!(tokens(Cursor::new("a\\`\\\né")), chars("a\\`\\\né"));
        let mut joining = Cursor::new("a\\\n\\\nb\\\\\n");
        joining.set_joins(true);
        assert_eq!(tokens(joining), chars("ab\\"));
    }

    #[test]
    fn inside_backquotes_a_layer_of_backslashes_is_removed() {
        let mut cursor = Cursor::new(r#"\\ \$ \` \" \x `"#);
        assert_eq!(cursor.open_layer(QuoteContext::Bare), Some(1));
        let mut expected = chars(r#"\ $ ` \" \x "#);
        expected.push(CursorToken::Backquote(1));
        assert_eq!(tokens(cursor), expected);

        let mut cursor = Cursor::new(r#"\""#);
        cursor.open_layer(QuoteContext::Double);
        assert_eq!(tokens(cursor), chars("\""));
    }

    #[test]
    fn a_layer_inside_a_layer_ends_where_it_should() {
        let mut cursor = Cursor::new(r"\\\` \\\\x \` `");
        cursor.open_layer(QuoteContext::Bare);
        cursor.open_layer(QuoteContext::Bare);
        let mut expected = chars(r"` \x ");
        expected.extend([CursorToken::Backquote(2), CursorToken::Char(' '), CursorToken::Backquote(1)]);
        assert_eq!(tokens(cursor), expected);
        assert_eq!(cursor.open_layer(QuoteContext::Bare), Some(3));
        assert_eq!(cursor.open_layer(QuoteContext::Bare), None);
    }
}
