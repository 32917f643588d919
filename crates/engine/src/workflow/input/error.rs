//! Why an input was refused, and where.
//!
//! Lines and columns are counted from 1 and columns in characters, as editors show them. The caller
//! adds the name of the file.

use super::format::InputFormat;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", self.location())]
pub struct InputError {
    /// `None` if the document was read and holds the wrong value.
    pub format: Option<InputFormat>,
    pub line: Option<usize>,
    pub column: Option<usize>,
    /// A lower-case clause.
    pub message: String,
    pub help: Option<String>,
}

impl InputError {
    pub(super) fn new(format: Option<InputFormat>, message: impl Into<String>) -> Self {
        Self { format, line: None, column: None, message: message.into(), help: None }
    }

    pub(super) fn at_line(mut self, line: usize) -> Self {
        self.line = Some(line);
        self
    }

    pub(super) fn at_column(mut self, column: usize) -> Self {
        self.column = Some(column);
        self
    }

    /// Adds the line and column of this byte of the text.
    pub(super) fn at(self, text: &str, byte: usize) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let begun = before.rsplit('\n').next().unwrap_or_default();
        self.at_line(before.matches('\n').count().saturating_add(1))
            .at_column(begun.chars().count().saturating_add(1))
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    fn location(&self) -> String {
        match (self.line, self.column) {
            (Some(line), Some(column)) => format!("line {line}, column {column}: "),
            (Some(line), None) => format!("line {line}: "),
            (None, _) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_counted_in_lines_and_characters() {
        let error = InputError::new(Some(InputFormat::Json), "expected value");
        assert_eq!(error.to_string(), "expected value");
        assert_eq!(error.clone().at_line(3).to_string(), "line 3: expected value");
        let text = "a\nüöä!";
        assert_eq!(error.at(text, 8).to_string(), "line 2, column 4: expected value");
    }
}
