//! A place in a template's text, and what stands there for whoever reads it.
//!
//! The text inside backquotes is not what the shell runs: one layer of backslashes is taken off
//! first, once more for each backquote inside another. The cursor takes them off while it walks,
//! so that everything above it reads plain characters and still knows where they stand. It knows
//! no grammar: what a character means is for the reader and the lexer.

/// Backquotes inside backquotes inside backquotes; who needs more is told to write `$(…)`.
const MOST_LAYERS: usize = 3;

/// What the next character is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// A character, backslashes of the layers around it removed.
    Char(char),
    /// The backquote that ends this layer (counted from 1), and all layers inside of it.
    Backquote(usize),
}

/// Where backquotes stand, which decides what a backslash hides inside of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layer {
    Bare,
    /// In double quotes: `\"` is a `"` too.
    Double,
    /// In a here-document, where shells disagree about `\"`.
    Body,
}

/// A place in a text. Copying it is how one looks ahead.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
    joins: bool,
    layers: usize,
    kinds: [Layer; MOST_LAYERS],
}

impl<'t> Cursor<'t> {
    /// The beginning of a text in which a backslash before a line break is nothing special.
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            joins: false,
            layers: 0,
            kinds: [Layer::Bare; MOST_LAYERS],
        }
    }

    /// The byte it stands at.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Moves to the end of the text.
    pub(super) fn end(&mut self) {
        self.at = self.text.len();
    }

    /// Whether a backslash before a line break joins the lines, from here on.
    pub(super) fn set_joins(&mut self, joins: bool) {
        self.joins = joins;
    }

    /// Whether it stands inside backquotes.
    pub(super) fn in_backquotes(&self) -> bool {
        self.layers > 0
    }

    /// Whether one of the backquotes around it stands in a here-document.
    pub(super) fn in_body_backquotes(&self) -> bool {
        self.kinds
            .iter()
            .take(self.layers)
            .any(|kind| *kind == Layer::Body)
    }

    /// Enters backquotes; nothing if they are nested too deep to be followed.
    pub(super) fn open_layer(&mut self, kind: Layer) -> Option<usize> {
        *self.kinds.get_mut(self.layers)? = kind;
        self.layers = self.layers.saturating_add(1);
        Some(self.layers)
    }

    /// Leaves this layer and all inside of it.
    pub(super) fn close_layer(&mut self, layer: usize) {
        self.layers = self.layers.min(layer.saturating_sub(1));
    }

    /// Moves over lines that are joined here, so that it stands at the next character itself.
    pub(super) fn settle(&mut self) {
        while self.joins
            && let Some((Token::Char('\\'), end)) = self.decode(self.at, self.layers)
            && let Some((Token::Char('\n'), after)) = self.decode(end, self.layers)
        {
            self.at = after;
        }
    }

    pub(super) fn peek(&self) -> Option<Token> {
        Some(self.next()?.0)
    }

    /// The next character, if it is one.
    pub(super) fn peek_char(&self) -> Option<char> {
        match self.peek()? {
            Token::Char(c) => Some(c),
            Token::Backquote(_) => None,
        }
    }

    /// Whether the next characters are these.
    pub(super) fn starts_with(&self, expected: &str) -> bool {
        let mut ahead = *self;
        expected
            .chars()
            .all(|c| ahead.bump() == Some(Token::Char(c)))
    }

    /// Whether the text itself goes on with this, no backslash removed.
    pub(super) fn is_at(&self, expected: &str) -> bool {
        self.text
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(expected))
    }

    /// The character behind the next one.
    pub(super) fn second_char(&self) -> Option<char> {
        let mut ahead = *self;
        ahead.bump();
        ahead.peek_char()
    }

    /// Takes what comes next.
    pub(super) fn bump(&mut self) -> Option<Token> {
        let (token, end) = self.next()?;
        self.at = end;
        Some(token)
    }

    pub(super) fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.bump();
        }
    }

    /// Takes characters as long as they are wanted.
    pub(super) fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(c) = self.peek_char().filter(|c| wanted(*c)) {
            taken.push(c);
            self.bump();
        }
        taken
    }

    fn next(&self) -> Option<(Token, usize)> {
        let mut ahead = *self;
        ahead.settle();
        self.decode(ahead.at, self.layers)
    }

    /// What stands at a byte for somebody inside of so many layers, and where it ends. It calls
    /// itself once a layer, never once a character.
    fn decode(&self, mut at: usize, layer: usize) -> Option<(Token, usize)> {
        let Some(outer) = layer.checked_sub(1) else {
            let c = self.text.get(at..)?.chars().next()?;
            return Some((Token::Char(c), at.saturating_add(c.len_utf8())));
        };
        loop {
            let (token, end) = self.decode(at, outer)?;
            match token {
                Token::Char('`') => return Some((Token::Backquote(layer), end)),
                Token::Char('\\') => {}
                other => return Some((other, end)),
            }
            match self.decode(end, outer) {
                Some((Token::Char('\n'), after)) => at = after,
                Some((Token::Char(c), after)) if self.hides(outer, c) => {
                    return Some((Token::Char(c), after));
                }
                _ => return Some((Token::Char('\\'), end)),
            }
        }
    }

    fn hides(&self, layer: usize, c: char) -> bool {
        matches!(c, '\\' | '`' | '$') || (c == '"' && self.kinds.get(layer) == Some(&Layer::Double))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(mut cursor: Cursor<'_>) -> Vec<Token> {
        std::iter::from_fn(|| cursor.bump()).collect()
    }

    fn chars(text: &str) -> Vec<Token> {
        text.chars().map(Token::Char).collect()
    }

    #[test]
    fn a_plain_text_is_its_characters() {
        assert_eq!(tokens(Cursor::new("a\\`\\\né")), chars("a\\`\\\né"));
        let mut joining = Cursor::new("a\\\n\\\nb\\\\\n");
        joining.set_joins(true);
        assert_eq!(tokens(joining), chars("ab\\"));
    }

    #[test]
    fn inside_backquotes_a_layer_of_backslashes_is_gone() {
        let mut cursor = Cursor::new(r#"\\ \$ \` \" \x `"#);
        assert_eq!(cursor.open_layer(Layer::Bare), Some(1));
        let mut expected = chars(r#"\ $ ` \" \x "#);
        expected.push(Token::Backquote(1));
        assert_eq!(tokens(cursor), expected);

        let mut cursor = Cursor::new(r#"\""#);
        cursor.open_layer(Layer::Double);
        assert_eq!(tokens(cursor), chars("\""));
    }

    #[test]
    fn a_layer_inside_a_layer_ends_where_it_should() {
        let mut cursor = Cursor::new(r"\\\` \\\\x \` `");
        cursor.open_layer(Layer::Bare);
        cursor.open_layer(Layer::Bare);
        let mut expected = chars(r"` \x ");
        expected.extend([Token::Backquote(2), Token::Char(' '), Token::Backquote(1)]);
        assert_eq!(tokens(cursor), expected);
        assert_eq!(cursor.open_layer(Layer::Bare), Some(3));
        assert_eq!(cursor.open_layer(Layer::Bare), None);
    }
}
