//! Follows a shell text character by character and tracks the constructs around it.
//!
//! POSIX quoting, and as much of bash as changes where a quote ends. Every character is read a bounded
//! number of times, nesting is a stack in memory, and no text makes it fail: errors that a shell
//! would report are left to the shell. After a text that shells read differently, `doubt` is set and no
//! reference is placed any more.

use std::ops::Range;

use super::commands::{Closer, Commands};
use super::frame::{Frame, FrameChange, HereDocument};
use super::obstacle::Obstacle;
use super::template::Edits;
use super::word::LiteralPrefix;
use crate::workflow::cursor::{Cursor, CursorToken, QuoteContext};
use crate::workflow::filter::SyntaxError;
use crate::workflow::template::reader::{BraceReading, MOST_ERRORS, ReferenceReader};
use crate::workflow::template::reference::Reference;

/// A `${` that belongs to the shell.
pub(super) struct ForeignBrace;

pub(super) struct ShellLexer<'t, 'n> {
    pub(super) text: &'t str,
    pub(super) cursor: Cursor<'t>,
    pub(super) reader: ReferenceReader<'n>,
    pub(super) edits: Edits,
    /// Here-documents whose bodies begin after the next line break.
    pub(super) waiting: Vec<HereDocument>,
    frames: Vec<Frame<'t>>,
    /// Indices of the frames that are bodies of here-documents.
    bodies: Vec<usize>,
    /// Why the frames take no reference, innermost last.
    obstacles: Vec<Obstacle>,
    doubt: Option<Obstacle>,
    /// The references placed so far: their ranges and names.
    placed: Vec<(Range<usize>, String)>,
    errors: Vec<SyntaxError>,
}

impl<'t, 'n> ShellLexer<'t, 'n> {
    /// The edits that turn the references of a text into variables.
    pub(super) fn read(text: &'t str, reader: ReferenceReader<'n>) -> Result<Edits, Vec<SyntaxError>> {
        let mut cursor = Cursor::new(text);
        cursor.set_joins(true);
        let mut lexer = Self {
            text,
            cursor,
            reader,
            edits: Edits::default(),
            waiting: vec![],
            frames: vec![Frame::Commands(Commands::new(Closer::End, 0))],
            bodies: vec![],
            obstacles: vec![],
            doubt: None,
            placed: vec![],
            errors: vec![],
        };
        lexer.run();
        lexer.finish();
        if lexer.errors.is_empty() {
            return Ok(lexer.edits);
        }
        lexer.errors.sort_by_key(|error| error.range.start);
        lexer.errors.truncate(MOST_ERRORS);
        Err(lexer.errors)
    }

    fn run(&mut self) {
        loop {
            // Lines of a here-document are compared with its delimiter before they are joined.
            if !matches!(self.frames.last(), Some(Frame::Bodies(_))) {
                self.cursor.settle();
            }
            let Some(token) = self.cursor.peek_token() else {
                return;
            };
            match token {
                CursorToken::Backquote(layer) => self.end_backquotes(layer),
                CursorToken::Char(c) => {
                    let Some(frame) = self.frames.pop() else {
                        return;
                    };
                    self.step(frame, c);
                }
            }
        }
    }

    /// The end of the text ends all words that are still open.
    fn finish(&mut self) {
        while let Some(frame) = self.frames.pop() {
            if let Frame::Commands(mut commands) = frame {
                self.end_word(&mut commands);
            }
        }
    }

    fn step(&mut self, mut frame: Frame<'t>, c: char) {
        if c == '\n' && !matches!(frame, Frame::Bodies(_)) {
            self.watch_delimiter();
        }
        let blocked = frame.obstacle().is_some();
        let next = match &mut frame {
            Frame::Commands(commands) => self.in_commands(commands, c),
            Frame::Double { again } => self.in_double(*again, c),
            Frame::Parameter(parameter) => self.in_parameter(parameter, c),
            Frame::Arithmetic(arithmetic) => self.in_arithmetic(arithmetic, c),
            Frame::Bodies(bodies) => self.in_bodies(bodies, c),
        };
        if blocked {
            self.obstacles.pop();
        }
        match next {
            FrameChange::Stay => self.push(frame),
            FrameChange::Open(inner) => {
                self.push(frame);
                self.open(inner);
            }
            FrameChange::Close => self.close(frame),
        }
    }

    fn push(&mut self, frame: Frame<'t>) {
        self.obstacles.extend(frame.obstacle());
        self.frames.push(frame);
    }

    fn open(&mut self, frame: Frame<'t>) {
        if matches!(frame, Frame::Bodies(_)) {
            self.bodies.push(self.frames.len());
        }
        self.push(frame);
    }

    /// Updates the frame around. `frame` is off the stack already.
    fn close(&mut self, frame: Frame<'t>) {
        match frame {
            Frame::Bodies(_) => {
                self.bodies.pop();
            }
            Frame::Commands(commands) => {
                if commands.has_open_case() {
                    self.doubt(Obstacle::Parentheses);
                }
                if commands.closer == Closer::Parenthesis
                    && let Some(Frame::Commands(outer)) = self.frames.last_mut()
                {
                    outer.after_parenthesis();
                }
                let own = matches!(commands.closer, Closer::Substitution | Closer::Backquote(_));
                if own && self.waiting.len() > commands.waiting_from {
                    self.waiting.truncate(commands.waiting_from);
                    self.doubt(Obstacle::HereDocument);
                }
            }
            Frame::Double { .. } | Frame::Parameter(_) | Frame::Arithmetic(_) => {}
        }
    }

    /// A backquote ends everything opened since the one it belongs to.
    fn end_backquotes(&mut self, layer: usize) {
        self.cursor.bump();
        self.cursor.close_layer(layer);
        while let Some(mut frame) = self.frames.pop() {
            if frame.obstacle().is_some() {
                self.obstacles.pop();
            }
            let mut own = false;
            if let Frame::Commands(commands) = &mut frame {
                self.end_word(commands);
                own = commands.closer == Closer::Backquote(layer);
            }
            self.close(frame);
            if own {
                return;
            }
            self.doubt(Obstacle::Backquotes);
        }
    }

    /// Notes a line that is the delimiter of the here-document around while something inside is open:
    /// some shells look for the delimiter first, some for the end of what is open.
    fn watch_delimiter(&mut self) {
        let innermost = self.bodies.last().and_then(|at| self.frames.get(*at));
        if let Some(Frame::Bodies(bodies)) = innermost {
            let mut ahead = self.cursor;
            ahead.bump();
            if Self::behind_delimiter(ahead, &bodies.current).is_some() {
                self.doubt(Obstacle::HereDocument);
            }
        }
    }

    /// Shells read the text differently from here on.
    pub(super) fn doubt(&mut self, obstacle: Obstacle) {
        self.doubt.get_or_insert(obstacle);
    }

    pub(super) fn placed(&self) -> usize {
        self.placed.len()
    }

    /// Ends the word of a list of commands, if any, and refuses its references that turn out to stand
    /// where they may not.
    pub(super) fn end_word(&mut self, commands: &mut Commands<'t>) {
        let Some(word) = commands.word.take() else {
            return;
        };
        let reference = self.placed.get(word.first_reference).map(|(range, _)| range.start);
        let literal = LiteralPrefix::read(word.start, self.cursor.at(), reference);
        if let Some((first, obstacle)) = commands.end_word(&word, &literal, self.placed.len()) {
            // They are refused once, however many words they are part of.
            let first = first.min(self.placed.len());
            let refused = self.placed.split_off(first);
            for (range, name) in refused.into_iter().take(MOST_ERRORS) {
                self.refuse(range, &name, obstacle);
            }
        }
    }

    /// Reads the `${` at the cursor: `None` if it is refused. If it is the shell's, the cursor has not
    /// moved.
    pub(super) fn reference(&mut self) -> Result<Option<(Reference, Range<usize>)>, ForeignBrace> {
        match self.reader.read(&mut self.cursor) {
            BraceReading::Foreign => Err(ForeignBrace),
            BraceReading::Ours(reference, range) => Ok(Some((reference, range))),
            BraceReading::Refused(error) => {
                self.report_error(error);
                Ok(None)
            }
        }
    }

    /// Reads the `${` at the cursor and replaces it.
    pub(super) fn brace(&mut self, context: QuoteContext) -> Result<(), ForeignBrace> {
        if let Some(read) = self.reference()? {
            self.place(read, false, |variable| context.variable(variable));
        }
        Ok(())
    }

    /// Replaces a reference by its variable, or by its value if it is `raw:`. Returns the edit that
    /// wrote the variable.
    pub(super) fn place(
        &mut self,
        (reference, range): (Reference, Range<usize>),
        escape_raw: bool,
        written: impl FnOnce(&str) -> String,
    ) -> Option<usize> {
        let raw = reference.is_raw();
        let slot = self.admit(reference, &range)?;
        if raw {
            self.edits.insert_raw(range, slot, escape_raw);
            return None;
        }
        let written = written(self.edits.variable(slot));
        Some(self.edits.replace(range, written))
    }

    /// `None` if the reference is not allowed there.
    fn admit(&mut self, reference: Reference, range: &Range<usize>) -> Option<usize> {
        // `raw:` counts as the author's own text, wherever it stands.
        if !reference.is_raw() {
            if let Some(obstacle) = self.obstacle() {
                self.refuse(range.clone(), reference.text(), obstacle);
                return None;
            }
            self.placed.push((range.clone(), reference.text().to_owned()));
        }
        Some(self.edits.slot(reference))
    }

    /// Writes the `$${` of this range.
    pub(super) fn literal(&mut self, range: Range<usize>, context: QuoteContext) {
        let written = context.literal();
        let hidden = self.cursor.in_backquotes() && written.contains('\\');
        match hidden.then_some(Obstacle::BackquotedLiteral).or(self.doubt) {
            Some(obstacle) => self.refuse_text(range, "$${", "", obstacle),
            None => {
                self.edits.replace(range, written.to_owned());
            }
        }
    }

    pub(super) fn refuse(&mut self, range: Range<usize>, name: &str, obstacle: Obstacle) {
        self.refuse_text(range, &format!("${{{name}}}"), name, obstacle);
    }

    fn refuse_text(&mut self, range: Range<usize>, written: &str, name: &str, obstacle: Obstacle) {
        let (why, help) = obstacle.texts();
        let error = SyntaxError::new(range, format!("`{written}` {why}"));
        self.report_error(error.help(help.replace("NAME", name)));
    }

    pub(super) fn report_error(&mut self, error: SyntaxError) {
        self.errors.push(error);
        if self.errors.len() >= MOST_ERRORS {
            self.cursor.move_to_end();
            self.frames.clear();
        }
    }

    fn obstacle(&self) -> Option<Obstacle> {
        self.obstacles.last().copied().or(self.doubt)
    }
}
