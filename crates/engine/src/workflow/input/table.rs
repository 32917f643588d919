//! A table with a header, as CSV or TSV: one object a record, every value a text.
//!
//! Nothing is guessed: `007` stays a text, and a record that does not fit the header is refused with its
//! line rather than padded or cut. To the parser a quote that is never closed reaches to the end, which
//! would swallow records in silence, so this file looks for one.

use csv::{ErrorKind, ReaderBuilder, StringRecord};
use serde_json::{Map, Value};

use super::format::InputFormat;
use super::reader::InputError;

pub(super) fn read(text: &str, format: InputFormat) -> Result<Vec<Value>, InputError> {
    let table = DelimitedText { text, format };
    let mut reader =
        ReaderBuilder::new().delimiter(table.separator()).has_headers(false).from_reader(text.as_bytes());
    let mut record = StringRecord::new();
    let mut names: Vec<String> = vec![];
    let mut records = vec![];
    let mut last = 0;
    while reader.read_record(&mut record).map_err(|error| table.refusal(&error))? {
        last = table.start_of(record.position());
        if names.is_empty() {
            names = table.header(&record, last)?;
            continue;
        }
        let values = record.iter().map(Value::from);
        let fields: Map<String, Value> = names.iter().cloned().zip(values).collect();
        records.push(Value::Object(fields));
    }
    if names.is_empty() {
        return Err(table.error("the header is missing"));
    }
    match table.open_quote(last) {
        None => Ok(records),
        Some(quote) => Err(table.never_closed(quote)),
    }
}

#[derive(Clone, Copy)]
struct DelimitedText<'t> {
    text: &'t str,
    format: InputFormat,
}

impl DelimitedText<'_> {
    fn separator(self) -> u8 {
        match self.format {
            InputFormat::Tsv => b'\t',
            _ => b',',
        }
    }

    fn error(self, message: impl Into<String>) -> InputError {
        InputError::new(Some(self.format), message)
    }

    fn at(self, byte: usize, message: impl Into<String>) -> InputError {
        let error = self.error(message).at(self.text, byte);
        InputError { column: None, ..error }
    }

    fn never_closed(self, quote: usize) -> InputError {
        self.error("the quote is not closed").at(self.text, quote)
    }

    /// The parser counts the blank lines before a record as part of it.
    fn start_of(self, position: Option<&csv::Position>) -> usize {
        let byte = position.map_or(0, csv::Position::byte);
        let byte = usize::try_from(byte).unwrap_or(usize::MAX);
        let rest = self.text.get(byte..).unwrap_or_default();
        let trimmed = rest.trim_start_matches(['\r', '\n']);
        byte.saturating_add(rest.len().saturating_sub(trimmed.len()))
    }

    fn header(self, record: &StringRecord, start: usize) -> Result<Vec<String>, InputError> {
        let mut names: Vec<String> = vec![];
        for name in record {
            let column = names.len().saturating_add(1);
            if name.is_empty() {
                return Err(self.at(start, format!("column {column} of the header has no name")));
            }
            names.push(name.to_owned());
        }
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort_unstable();
        let mut neighbours = sorted.iter().zip(sorted.iter().skip(1));
        match neighbours.find_map(|(a, b)| (a == b).then_some(a)) {
            None => Ok(names),
            Some(twice) => Err(self.at(start, format!("the header repeats `{twice}`"))),
        }
    }

    fn refusal(self, error: &csv::Error) -> InputError {
        match error.kind() {
            ErrorKind::UnequalLengths { pos, expected_len, len } => {
                let start = self.start_of(pos.as_ref());
                if let Some(quote) = self.open_quote(start) {
                    return self.never_closed(quote);
                }
                let values = if *len == 1 { "value" } else { "values" };
                let message = format!("the record has {len} {values}, but the header has {expected_len}");
                self.at(start, message)
            }
            // The text is valid UTF-8 and in memory, so nothing else can fail.
            _ => self.error("the table cannot be read"),
        }
    }

    /// The last quote from `start` on, the beginning of a record, that is never closed.
    fn open_quote(self, start: usize) -> Option<usize> {
        #[derive(Clone, Copy)]
        enum QuoteState {
            Start,
            Plain,
            Quotes(usize),
            /// After a quote inside quotes: it closes them, or is half of a doubled one.
            Closing(usize),
        }
        let rest = self.text.get(start..).unwrap_or_default();
        let mut state = QuoteState::Start;
        for (at, byte) in rest.bytes().enumerate() {
            state = match (state, byte) {
                (QuoteState::Start, b'"') => QuoteState::Quotes(at),
                (QuoteState::Quotes(open), b'"') => QuoteState::Closing(open),
                (QuoteState::Closing(open), b'"') | (QuoteState::Quotes(open), _) => QuoteState::Quotes(open),
                (_, b'\r' | b'\n') => QuoteState::Start,
                (_, byte) if byte == self.separator() => QuoteState::Start,
                _ => QuoteState::Plain,
            };
        }
        match state {
            QuoteState::Quotes(open) => Some(start.saturating_add(open)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rows(text: &str) -> Result<Vec<Value>, String> {
        read(text, InputFormat::Csv).map_err(|error| error.to_string())
    }

    #[test]
    fn every_record_is_an_object_of_texts() {
        let text = "id,name\r\n007,\"a, \"\"b\"\"\nc\"\r\n\r\n8,5\" disk";
        assert_eq!(
            rows(text).unwrap(),
            [json!({"id": "007", "name": "a, \"b\"\nc"}), json!({"id": "8", "name": "5\" disk"})]
        );
        assert_eq!(rows("id,name\n"), Ok(vec![]));
        assert_eq!(
            read("id\tname\n1\ta,b\n", InputFormat::Tsv).unwrap(),
            [json!({"id": "1", "name": "a,b"})]
        );
    }

    #[test]
    fn a_header_names_every_column_once() {
        assert_eq!(rows("").unwrap_err(), "the header is missing");
        assert_eq!(rows("\n\n").unwrap_err(), "the header is missing");
        assert_eq!(rows("a,,b\n").unwrap_err(), "line 1: column 2 of the header has no name");
        assert_eq!(rows("\na,b,a\n1,2,3\n").unwrap_err(), "line 2: the header repeats `a`");
    }

    #[test]
    fn a_record_that_does_not_fit_is_refused_with_its_line() {
        for (text, message) in [
            ("a,b\n1,2\n3\n", "line 3: the record has 1 value, but the header has 2"),
            ("a,b\n1,2,3\n", "line 2: the record has 3 values, but the header has 2"),
            ("a,b\n\"x\ny\",2\n\r\n\n3\n", "line 6: the record has 1 value, but the header has 2"),
        ] {
            assert_eq!(rows(text).unwrap_err(), message);
        }
    }

    #[test]
    fn a_quote_that_is_not_closed_is_refused() {
        for (text, message) in [
            ("a,b\n1,\"x\n2,y\n", "line 2, column 3: the quote is not closed"),
            ("a,b\n1,2\n\"x\n2,y\n", "line 3, column 1: the quote is not closed"),
            ("a,\"b\n1,2\n", "line 1, column 3: the quote is not closed"),
            ("a,b\n1,\"x\"\"\n", "line 2, column 3: the quote is not closed"),
        ] {
            assert_eq!(rows(text).unwrap_err(), message, "{text}");
        }
    }
}
