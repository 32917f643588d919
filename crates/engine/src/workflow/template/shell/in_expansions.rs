//! Reads what a `$` begins: `${…}`, `$(…)`, `$((…))` and the rest.
//!
//! A command inside starts afresh, quotes around it or not. Arithmetic takes no reference, however
//! deep inside: some shells run commands that a value holds there.

use super::commands::{Closer, Commands};
use super::frame::{Arithmetic, Frame, Next, Parameter, ParameterStage};
use super::lexer::Lexer;
use super::obstacle::Obstacle;
use super::spot::Spot;

impl<'t> Lexer<'t, '_> {
    pub(super) fn dollar(&mut self, spot: Spot) -> Next<'t> {
        let start = self.cursor.at();
        if self.cursor.is_at("$${") {
            self.cursor.skip(3);
            self.literal(start..self.cursor.at(), spot);
            return Next::Stay;
        }
        match self.cursor.second_char() {
            Some('{') => {
                if !self.brace(spot) {
                    return Next::Stay;
                }
                self.cursor.skip(2);
                Next::Open(Frame::Parameter(Parameter::new(spot)))
            }
            Some('(') if self.cursor.starts_with("$((") => self.arithmetic(3, false),
            Some('(') => {
                self.cursor.skip(2);
                self.substitution()
            }
            Some('[') => self.arithmetic(2, true),
            Some('\'') if spot == Spot::Bare => {
                self.cursor.skip(2);
                self.dollar_quotes();
                Next::Stay
            }
            Some('$' | '#' | '?' | '*' | '@' | '!' | '-' | '0'..='9') => self.take(2),
            _ => self.take(1),
        }
    }

    pub(super) fn substitution(&mut self) -> Next<'t> {
        let commands = Commands::new(Closer::Substitution, self.waiting.len());
        Next::Open(Frame::Commands(commands))
    }

    fn arithmetic(&mut self, length: usize, bracket: bool) -> Next<'t> {
        self.cursor.skip(length);
        Next::Open(Frame::Arithmetic(Arithmetic { depth: 0, bracket }))
    }

    pub(super) fn in_arithmetic(&mut self, arithmetic: &mut Arithmetic, c: char) -> Next<'t> {
        let (open, close) = if arithmetic.bracket { ('[', ']') } else { ('(', ')') };
        match c {
            '\\' | '`' | '$' => return self.in_word(Spot::Double, c),
            '"' | '\'' | '\n' if arithmetic.bracket => {
                // Where `$[` means nothing this is the end of a word, or the beginning of a quote.
                self.doubt(Obstacle::Bracket);
                return Next::Close;
            }
            _ => {}
        }
        self.cursor.bump();
        if c == open {
            arithmetic.depth = arithmetic.depth.saturating_add(1);
        } else if c == close {
            if arithmetic.depth == 0 {
                return self.end_arithmetic(arithmetic.bracket);
            }
            arithmetic.depth = arithmetic.depth.saturating_sub(1);
        }
        Next::Stay
    }

    fn end_arithmetic(&mut self, bracket: bool) -> Next<'t> {
        if !bracket {
            if self.cursor.peek_char() == Some(')') {
                self.cursor.bump();
            } else {
                self.doubt(Obstacle::Parentheses);
            }
        }
        Next::Close
    }

    pub(super) fn in_parameter(&mut self, parameter: &mut Parameter, c: char) -> Next<'t> {
        match parameter.stage {
            ParameterStage::Name { begun } => self.in_name(parameter, begun, c),
            ParameterStage::Colon => {
                parameter.stage = match c {
                    '-' | '=' | '?' | '+' => {
                        self.cursor.bump();
                        let assigns = c == '=';
                        ParameterStage::Word { assigns }
                    }
                    _ => ParameterStage::Offset,
                };
                Next::Stay
            }
            ParameterStage::Subscript(depth) => {
                match c {
                    '[' => parameter.stage = ParameterStage::Subscript(depth.saturating_add(1)),
                    ']' if depth <= 1 => parameter.stage = ParameterStage::Name { begun: true },
                    ']' => parameter.stage = ParameterStage::Subscript(depth.saturating_sub(1)),
                    _ => return self.in_operand(parameter, c),
                }
                self.take(1)
            }
            ParameterStage::Word { .. } | ParameterStage::Pattern { .. } | ParameterStage::Offset => {
                self.in_operand(parameter, c)
            }
        }
    }

    fn in_name(&mut self, parameter: &mut Parameter, begun: bool, c: char) -> Next<'t> {
        let special = !begun && "!#?*@$-".contains(c);
        parameter.stage = match c {
            '$' if self.cursor.starts_with("${") && !self.brace(Spot::Bare) => return Next::Stay,
            '}' => {
                self.cursor.bump();
                return Next::Close;
            }
            _ if special || c.is_ascii_alphanumeric() || c == '_' => ParameterStage::Name { begun: true },
            '[' if begun => ParameterStage::Subscript(1),
            ':' if begun => ParameterStage::Colon,
            '-' | '=' | '?' | '+' if begun => ParameterStage::Word { assigns: c == '=' },
            '%' | '#' | '/' | '^' | ',' | '@' | '~' | '*' if begun => {
                let replaces = c == '/';
                ParameterStage::Pattern { replaces }
            }
            _ => {
                self.doubt(Obstacle::Substitution);
                parameter.stage = ParameterStage::Word { assigns: false };
                return Next::Stay;
            }
        };
        self.take(1)
    }

    fn in_operand(&mut self, parameter: &mut Parameter, c: char) -> Next<'t> {
        let spot = parameter.spot();
        match c {
            '}' => {
                if parameter.apostrophe {
                    self.doubt(Obstacle::Apostrophe);
                }
                self.cursor.bump();
                Next::Close
            }
            '\'' if parameter.quotes_singly() => self.in_word(spot, c),
            '\'' => {
                if matches!(parameter.stage, ParameterStage::Pattern { .. }) {
                    self.doubt(Obstacle::Apostrophe);
                }
                parameter.apostrophe = !parameter.apostrophe;
                self.take(1)
            }
            '"' => {
                if parameter.apostrophe {
                    self.doubt(Obstacle::Apostrophe);
                }
                self.cursor.bump();
                let again = parameter.outer != Spot::Bare;
                Next::Open(Frame::Double { again })
            }
            '\\' | '`' | '$' => self.in_word(spot, c),
            _ => self.take(1),
        }
    }
}
