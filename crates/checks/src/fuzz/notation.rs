//! Records as text, so that a mutant of one is another more often than not.
//!
//! A record is CBOR, in which a byte that changes is mostly the end of it. The same written as JSON
//! can be changed, cut and put together line by line: `[5, [6, [[[0, 0, 0, 1], 1]]]]` stands for the
//! bytes of a record, the format before them; `2[…]` for those of a record with another format. Bytes
//! that are no such text stand for themselves.

use serde_json::Value;
use undaunted_engine::event::FORMAT;

/// The bytes that a text stands for, or else the bytes themselves.
pub(super) fn record(given: &[u8]) -> Vec<u8> {
    let (format, text) = match given {
        [format @ b'0'..=b'9', text @ ..] => (format.saturating_sub(b'0'), text),
        text => (FORMAT, text),
    };
    match cbor(text, TEXT) {
        Some(cbor) => [&[format], cbor.as_slice()].concat(),
        None => given.to_vec(),
    }
}

/// What a text in JSON becomes in CBOR.
pub(super) const BYTES: u8 = 2;
pub(super) const TEXT: u8 = 3;

/// The CBOR that a list in JSON stands for, if this is one.
pub(super) fn cbor(text: &[u8], strings: u8) -> Option<Vec<u8>> {
    let text = text.trim_ascii_start();
    let value = text.starts_with(b"[").then(|| serde_json::from_slice(text));
    let mut bytes = vec![];
    put(&value?.ok()?, strings, &mut bytes);
    Some(bytes)
}

/// The lines of a text that are not empty.
pub(super) fn lines(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = data.split(|byte| *byte == b'\n');
    lines.map(<[u8]>::trim_ascii).filter(|line| !line.is_empty())
}

fn put(value: &Value, strings: u8, to: &mut Vec<u8>) {
    match value {
        Value::Null => to.push(0xf6),
        Value::Bool(it) => to.push(if *it { 0xf5 } else { 0xf4 }),
        Value::Number(number) => {
            if let Some(number) = number.as_u64() {
                head(0, number, to);
            } else if let Some(number) = number.as_i64() {
                // -1 is 0 of the negative numbers.
                head(1, number.unsigned_abs().saturating_sub(1), to);
            } else {
                to.push(0xfb);
                to.extend(number.as_f64().unwrap_or_default().to_be_bytes());
            }
        }
        Value::String(text) => {
            head(strings, length(text.len()), to);
            to.extend(text.as_bytes());
        }
        Value::Array(values) => {
            head(4, length(values.len()), to);
            for value in values {
                put(value, strings, to);
            }
        }
        Value::Object(fields) => {
            head(5, length(fields.len()), to);
            for (name, value) in fields {
                put(&Value::from(name.as_str()), strings, to);
                put(value, strings, to);
            }
        }
    }
}

/// What kind of thing comes, and its number or length, in the fewest bytes.
fn head(kind: u8, number: u64, to: &mut Vec<u8>) {
    let kind = kind << 5;
    let bytes = number.to_be_bytes();
    let [.., b4, b5, b6, b7] = bytes;
    match number {
        0..=23 => to.push(kind | b7),
        24..=0xff => to.extend([kind | 0x18, b7]),
        0x100..=0xffff => to.extend([kind | 0x19, b6, b7]),
        0x1_0000..=0xffff_ffff => to.extend([kind | 0x1a, b4, b5, b6, b7]),
        _ => {
            to.push(kind | 0x1b);
            to.extend(bytes);
        }
    }
}

fn length(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use undaunted_engine::event::Record;

    use super::*;
    use crate::repository;

    #[test]
    fn the_text_of_a_golden_record_stands_for_its_bytes() {
        let folder = repository().join("crates/engine/tests/golden");
        for file in fs::read_dir(folder).unwrap() {
            let file = fs::read_to_string(file.unwrap().path()).unwrap();
            let lines: Vec<&str> = file.lines().collect();
            let text = lines[1].strip_prefix("# ").unwrap();
            let numbers = lines[2..].iter().flat_map(|line| line.split_whitespace());
            let bytes: Vec<u8> = numbers.map(|number| u8::from_str_radix(number, 16).unwrap()).collect();
            let text = match bytes[0] {
                FORMAT => text.to_owned(),
                format => format!("{format}{text}"),
            };
            assert_eq!(record(text.as_bytes()), bytes, "{text}");
        }
    }

    #[test]
    fn what_is_no_text_of_a_record_stands_for_itself() {
        for bytes in [&b"\x01\x82"[..], b"", b"[1, 2", b"{}"] {
            assert_eq!(record(bytes), bytes);
        }
        assert!(Record::decode(&record(b"[-1, 2.5, {\"a\": true}]")).is_err());
    }
}
