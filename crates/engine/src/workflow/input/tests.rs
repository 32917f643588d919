//! Laws of reading, for any bytes.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{InputError, InputFormat, JsonPath, Selection, read};

#[track_caller]
fn refused(bytes: &[u8], format: InputFormat) -> InputError {
    let error = read(bytes, format).unwrap_err();
    assert_eq!(error.format, Some(format));
    error
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_text() {
    for (text, format, value) in [
        ("[1]", InputFormat::Json, json!([1])),
        ("1\r\n\r\n{}\r\n", InputFormat::JsonLines, json!([1, {}])),
        ("a\r\n1\r\n", InputFormat::Csv, json!([{"a": "1"}])),
        ("a\tb\r\n1\t2\r\n", InputFormat::Tsv, json!([{"a": "1", "b": "2"}])),
        ("a\r\nb", InputFormat::Lines, json!(["a", "b"])),
    ] {
        assert_eq!(read(text.as_bytes(), format).unwrap(), value);
        let marked = [b"\xEF\xBB\xBF", text.as_bytes()].concat();
        assert_eq!(read(&marked, format).unwrap(), value);
    }
}

#[test]
fn bytes_that_are_no_utf_8_are_refused_with_their_place() {
    for format in InputFormat::ALL.iter().copied() {
        let error = refused(b"a\n\xC3\xA9b\xFFc\n", format);
        assert_eq!(error.to_string(), "line 2, column 3: the text is not UTF-8");
    }
    let error = refused(b"\xFF\xFEa\0", InputFormat::Lines);
    assert_eq!(error.help.as_deref(), Some("it looks like UTF-16; save it as UTF-8"));
}

#[test]
fn a_mistake_in_json_is_marked_where_it_is() {
    for (text, message) in [
        ("", "the document is empty"),
        (" \n", "the document is empty"),
        ("{\n  \"ä\": x}", "line 2, column 8: expected value"),
        ("[1,\n", "line 2: the text ends while parsing a value"),
        ("[1] 2", "line 1, column 5: trailing characters"),
    ] {
        assert_eq!(refused(text.as_bytes(), InputFormat::Json).to_string(), message);
    }
    let help = refused(b"{}\n{}\n", InputFormat::Json).help.unwrap();
    assert_eq!(help, "if every line is a value of its own, use the format `jsonl`");
    let deep = "[".repeat(100_000);
    let error = refused(deep.as_bytes(), InputFormat::Json);
    assert_eq!(error.to_string(), "line 1, column 128: recursion limit exceeded");
}

#[test]
fn a_mistake_in_a_json_line_is_marked_with_its_line() {
    for (text, message) in [
        ("1\n\n\"é\" x\n", "line 3, column 5: trailing characters"),
        ("{\n}\n", "line 1, column 1: the text ends while parsing an object"),
    ] {
        assert_eq!(refused(text.as_bytes(), InputFormat::JsonLines).to_string(), message);
    }
    assert_eq!(read(b"", InputFormat::JsonLines), Ok(json!([])));
}

fn near_text() -> impl Strategy<Value = Vec<u8>> {
    let pieces = vec![
        "\"", "\n", "\r", ",", "\t", "a", "{", "}", "[", "]", ":", "1", "e", "é", "\\", "null", "\u{feff}",
        " ",
    ];
    prop::collection::vec(prop::sample::select(pieces), 0..40).prop_map(|pieces| pieces.concat().into_bytes())
}

fn near_path() -> impl Strategy<Value = String> {
    let pieces = vec![
        "$", ".", "..", "a", "*", "[", "]", "?", "@", "'", "\"", "\\", "==", "1", ":", "-", ",", "(", ")",
        "count(", "&&", "!", "é", " ",
    ];
    prop::collection::vec(prop::sample::select(pieces), 0..16)
        .prop_map(|pieces| format!("${}", pieces.concat()))
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        bytes in prop_oneof![near_text(), prop::collection::vec(any::<u8>(), 0..64)],
    ) {
        for format in InputFormat::ALL.iter().copied() {
            match read(&bytes, format) {
                Ok(document) => {
                    prop_assert!(format == InputFormat::Json || document.is_array());
                    if let Value::Array(elements) = &document {
                        let items = Selection::default().select(document.clone()).unwrap().items;
                        prop_assert_eq!(items.len(), elements.len());
                    }
                }
                Err(error) => {
                    prop_assert_eq!(error.format, Some(format));
                    prop_assert!(error.message.chars().next().is_some_and(|first| !first.is_uppercase()));
                }
            }
        }
    }

    #[test]
    fn any_text_is_a_json_path_or_refused_with_a_place_inside_it(
        text in prop_oneof![near_path(), any::<String>()],
    ) {
        match JsonPath::parse(&text) {
            Ok(path) => {
                let document = json!({"a": [1, {"a": 2}]});
                prop_assert!(path.query(&document).len() < 100_000);
            }
            Err(error) => prop_assert!(text.get(error.range.clone()).is_some(), "{:?}", error),
        }
    }

    #[test]
    fn moving_items_out_of_a_document_finds_what_the_path_finds(
        path in "\\$((\\.|\\.\\.)?[ab*]){0,3}(\\[\\*\\]|\\.\\*|\\[0\\])?",
        leaf in prop_oneof![Just(json!([1, 2])), Just(json!({"b": 1, "a": 2})), Just(json!(3))],
    ) {
        let document = json!({"a": {"a": leaf, "b": [leaf]}, "b": leaf});
        if let Ok(path) = JsonPath::parse(&path) {
            let found: Vec<Value> = path.query(&document).into_iter().cloned().collect();
            let selection = Selection { json_path: Some(path), ..Selection::default() };
            let items = selection.select(document).unwrap().items;
            let items: Vec<Value> = items.into_iter().map(|item| item.input).collect();
            prop_assert_eq!(items, found);
        }
    }

    #[test]
    fn lines_are_what_was_written(lines in prop::collection::vec("[^\r\n]*", 1..10), ending in "\r?\n") {
        let text = lines.join(&ending) + &ending;
        prop_assume!(!text.starts_with('\u{feff}'));
        prop_assert_eq!(read(text.as_bytes(), InputFormat::Lines).unwrap(), json!(lines));
    }

    #[test]
    fn json_lines_are_what_was_written(texts in prop::collection::vec(any::<String>(), 0..10)) {
        let values: Vec<Value> = texts.iter().map(|text| json!({"t": text})).collect();
        let lines: Vec<String> = values.iter().map(ToString::to_string).collect();
        let text = lines.join("\n");
        prop_assert_eq!(read(text.as_bytes(), InputFormat::JsonLines).unwrap(), Value::Array(values));
    }

    #[test]
    fn a_table_is_what_was_written(
        rows in prop::collection::vec((any::<String>(), "[a\",\t\r\n]{0,4}"), 0..10),
        tabs in any::<bool>(),
    ) {
        let (format, separator) = if tabs { (InputFormat::Tsv, b'\t') } else { (InputFormat::Csv, b',') };
        let mut writer = csv::WriterBuilder::new().delimiter(separator).from_writer(vec![]);
        writer.write_record(["a", "b"]).unwrap();
        for (a, b) in &rows {
            writer.write_record([a, b]).unwrap();
        }
        let bytes = writer.into_inner().unwrap();
        let values: Vec<Value> = rows.iter().map(|(a, b)| json!({"a": a, "b": b})).collect();
        prop_assert_eq!(read(&bytes, format).unwrap(), Value::Array(values));
    }
}
