//! The format of an input, from its name in `format:` or from the file's extension.
//!
//! The content is never used to guess: a file that changes must not change how it is read.

use crate::stored::worded;
use std::fmt;
use std::path::Path;

worded! {
    /// `Csv` and `Tsv` have a header line.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum InputFormat {
        Json = "json",
        JsonLines = "jsonl",
        Csv = "csv",
        Tsv = "tsv",
        Lines = "lines",
    }
}

impl InputFormat {
    /// By the extension; `Lines` if it is unknown.
    pub fn of_path(path: &str) -> Self {
        let extension = Path::new(path).extension().unwrap_or_default();
        match extension.to_ascii_lowercase().to_str() {
            Some("json") => Self::Json,
            Some("jsonl" | "ndjson") => Self::JsonLines,
            Some("csv") => Self::Csv,
            Some("tsv") => Self::Tsv,
            _ => Self::Lines,
        }
    }
}

impl fmt::Display for InputFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_says_how_a_file_is_written() {
        for (path, format) in [
            ("items.json", InputFormat::Json),
            ("a/b.x/items.JSONL", InputFormat::JsonLines),
            ("items.ndjson", InputFormat::JsonLines),
            ("items.csv", InputFormat::Csv),
            ("items.tsv", InputFormat::Tsv),
            ("items.txt", InputFormat::Lines),
            ("data.csv/items", InputFormat::Lines),
            ("json", InputFormat::Lines),
            (".json", InputFormat::Lines),
            ("", InputFormat::Lines),
        ] {
            assert_eq!(InputFormat::of_path(path), format, "{path}");
        }
    }
}
