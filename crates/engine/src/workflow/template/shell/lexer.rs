//! Follows a shell text character by character and knows what it is inside of.
//!
//! POSIX quoting, and as much of bash as changes where a quote ends. Every character is read a bounded
//! number of times, nesting is a stack in memory, and no text makes it fail: reporting what a shell
//! would refuse is left to the shell. After a text that shells read differently, `doubt` is set and no
//! reference is placed any more.

use std::ops::Range;

use super::commands::{Closer, Commands};
use super::edits::Edits;
use super::frame::{Frame, Next};
use super::here_document::HereDocument;
use super::literal::Literal;
use super::obstacle::Obstacle;
use super::spot::Spot;
use crate::workflow::template::cursor::{Cursor, Token};
use crate::workflow::template::reader::{Found, Reader};
use crate::workflow::template::reference::Reference;
use crate::workflow::template::template_error::{MOST_ERRORS, TemplateError};

pub(super) struct Lexer<'t, 'n> {
    pub(super) text: &'t str,
    pub(super) cursor: Cursor<'t>,
    pub(super) reader: Reader<'n>,
    pub(super) edits: Edits,
    /// Here-documents whose bodies begin after the next line break.
    pub(super) waiting: Vec<HereDocument>,
    frames: Vec<Frame<'t>>,
    /// Indices of the frames that are bodies of here-documents.
    bodies: Vec<usize>,
    /// Why the frames take no reference, innermost last.
    obstacles: Vec<Obstacle>,
    doubt: Option<Obstacle>,
    /// Where references were placed, and their names.
    placed: Vec<(Range<usize>, String)>,
    errors: Vec<TemplateError>,
}

impl<'t, 'n> Lexer<'t, 'n> {
    /// The edits that turn the references of a text into variables.
    pub(super) fn read(text: &'t str, reader: Reader<'n>) -> Result<Edits, Vec<TemplateError>> {
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
            let Some(token) = self.cursor.peek() else {
                return;
            };
            match token {
                Token::Backquote(layer) => self.end_backquotes(layer),
                Token::Char(c) => {
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
            Next::Stay => self.push(frame),
            Next::Open(inner) => {
                self.push(frame);
                self.open(inner);
            }
            Next::Close => self.close(frame),
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

    /// Tells the frame around. `frame` is off the stack already.
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
        let reference = self.placed.get(word.first_reference);
        let reference = reference.map(|(range, _)| range.start);
        let literal = Literal::read(word.start, self.cursor.at(), reference);
        if let Some((first, obstacle)) = commands.end_word(&word, &literal, self.placed.len()) {
            // They are refused once, however many words they are part of.
            let first = first.min(self.placed.len());
            let refused = self.placed.split_off(first);
            for (range, name) in refused.into_iter().take(MOST_ERRORS) {
                self.refuse(range, &name, obstacle);
            }
        }
    }

    /// Reads the `${` at the cursor; true if it is the shell's, and then the cursor has not moved.
    pub(super) fn brace(&mut self, spot: Spot) -> bool {
        match self.reader.read(&mut self.cursor) {
            Found::Foreign => return true,
            Found::Refused(error) => self.report_error(error),
            Found::Ours(reference, range) => {
                let raw = reference.is_raw();
                if let Some(slot) = self.admit(reference, &range) {
                    if raw {
                        self.edits.insert_raw(range, slot, false);
                    } else {
                        let written = spot.variable(self.edits.variable(slot));
                        self.edits.replace(range, written);
                    }
                }
            }
        }
        false
    }

    /// `None` if the reference may not stand there.
    pub(super) fn admit(&mut self, reference: Reference, range: &Range<usize>) -> Option<usize> {
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
    pub(super) fn literal(&mut self, range: Range<usize>, spot: Spot) {
        let written = spot.literal();
        let hidden = self.cursor.in_backquotes() && written.contains('\\');
        match hidden.then_some(Obstacle::BackquotedLiteral).or(self.doubt) {
            Some(obstacle) => self.report(range, obstacle.message("$${"), obstacle.help("")),
            None => {
                self.edits.replace(range, written.to_owned());
            }
        }
    }

    pub(super) fn refuse(&mut self, range: Range<usize>, name: &str, obstacle: Obstacle) {
        let message = obstacle.message(&format!("${{{name}}}"));
        self.report(range, message, obstacle.help(name));
    }

    pub(super) fn report_error(&mut self, error: TemplateError) {
        self.errors.push(error);
        if self.errors.len() >= MOST_ERRORS {
            self.cursor.end();
            self.frames.clear();
        }
    }

    fn report(&mut self, range: Range<usize>, message: String, help: String) {
        self.report_error(TemplateError { range, message, help: Some(help) });
    }

    fn obstacle(&self) -> Option<Obstacle> {
        self.obstacles.last().copied().or(self.doubt)
    }
}
