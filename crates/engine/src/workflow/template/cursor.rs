//! A cursor over a template's text, which sees it as the shell does.
//!
//! The text inside backquotes is not what the shell runs: one layer of backslashes is removed first,
//! once more for each backquote inside another. The cursor removes them as it moves, so that its users
//! read plain characters and still know where they stand. It knows no grammar.

/// How deep backquotes may nest; the error advises `$(…)`.
const MOST_LAYERS: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// With the backslashes of the layers around it removed.
    Char(char),
    /// It ends this layer (counted from 1) and all layers inside of it.
    Backquote(usize),
}

/// Where backquotes stand, which decides what a backslash escapes inside of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layer {
    Bare,
    /// In double quotes: `\"` is a `"` too.
    Double,
    /// In a here-document, where shells disagree about `\"`.
    Body,
}

/// A copy of it looks ahead.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
    joins: bool,
    layers: usize,
    kinds: [Layer; MOST_LAYERS],
}

impl<'t> Cursor<'t> {
    /// In the text a backslash before a line break is nothing special, until `set_joins`.
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0, joins: false, layers: 0, kinds: [Layer::Bare; MOST_LAYERS] }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn end(&mut self) {
        self.at = self.text.len();
    }

    /// From here on, whether a backslash before a line break joins the lines.
    pub(super) fn set_joins(&mut self, joins: bool) {
        self.joins = joins;
    }

    pub(super) fn in_backquotes(&self) -> bool {
        self.layers > 0
    }

    /// Whether one of the backquotes around it stands in a here-document.
    pub(super) fn in_body_backquotes(&self) -> bool {
        let mut kinds = self.kinds.iter().take(self.layers);
        kinds.any(|kind| *kind == Layer::Body)
    }

    /// Enters backquotes; `None` if they are nested too deep.
    pub(super) fn open_layer(&mut self, kind: Layer) -> Option<usize> {
        *self.kinds.get_mut(self.layers)? = kind;
        self.layers = self.layers.saturating_add(1);
        Some(self.layers)
    }

    /// Leaves this layer and all layers inside of it.
    pub(super) fn close_layer(&mut self, layer: usize) {
        self.layers = self.layers.min(layer.saturating_sub(1));
    }

    /// Skips line joins, so that the cursor stands at the next character itself.
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

    pub(super) fn peek_char(&self) -> Option<char> {
        match self.peek()? {
            Token::Char(c) => Some(c),
            Token::Backquote(_) => None,
        }
    }

    /// Compares decoded characters.
    pub(super) fn starts_with(&self, expected: &str) -> bool {
        let mut ahead = *self;
        let mut expected = expected.chars();
        expected.all(|c| ahead.bump() == Some(Token::Char(c)))
    }

    /// Compares the text itself, no backslash removed.
    pub(super) fn is_at(&self, expected: &str) -> bool {
        let rest = self.text.get(self.at..);
        rest.is_some_and(|rest| rest.starts_with(expected))
    }

    pub(super) fn second_char(&self) -> Option<char> {
        let mut ahead = *self;
        ahead.bump();
        ahead.peek_char()
    }

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

    /// The token at a byte inside of so many layers, and where it ends. It recurses once per layer,
    /// never per character.
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
