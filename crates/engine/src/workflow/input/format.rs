//! How an input is written, by its name or by the name of its file.
//!
//! Nothing looks into the bytes to guess: a file that changes its content must not change how it is
//! read.

use std::fmt;
use std::path::Path;

/// How an input is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    Json,
    /// One JSON value a line.
    JsonLines,
    /// A table with a header; commas between its values.
    Csv,
    /// A table with a header; tabs between its values.
    Tsv,
    /// One text a line.
    Lines,
}

impl Format {
    /// Every format with the name it has in `format:`.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("json", Self::Json),
        ("jsonl", Self::JsonLines),
        ("csv", Self::Csv),
        ("tsv", Self::Tsv),
        ("lines", Self::Lines),
    ];

    /// The format of a file with this name; lines, if the name says nothing.
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

    /// The format with this name in `format:`.
    pub fn of_name(name: &str) -> Option<Self> {
        let mut names = Self::NAMES.into_iter();
        names.find_map(|(known, format)| (known == name).then_some(format))
    }

    /// Its name in `format:`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::JsonLines => "jsonl",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Lines => "lines",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_says_how_a_file_is_written() {
        for (path, format) in [
            ("items.json", Format::Json),
            ("a/b.x/items.JSONL", Format::JsonLines),
            ("items.ndjson", Format::JsonLines),
            ("items.csv", Format::Csv),
            ("items.tsv", Format::Tsv),
            ("items.txt", Format::Lines),
            ("data.csv/items", Format::Lines),
            ("json", Format::Lines),
            (".json", Format::Lines),
            ("", Format::Lines),
        ] {
            assert_eq!(Format::of_path(path), format, "{path}");
        }
    }

    #[test]
    fn a_format_is_found_by_its_name() {
        for (name, format) in Format::NAMES {
            assert_eq!(Format::of_name(name), Some(format));
            assert_eq!(format.to_string(), name);
        }
        assert_eq!(Format::of_name("yaml"), None);
    }
}
