//! Records as text, so that a mutant of a record is often another record.
//!
//! A record is CBOR, which a changed byte mostly breaks. Written as JSON it can be changed, cut and joined
//! line by line: `[5, [6, [[[0, 0, 0, 1], 1]]]]` stands for the bytes of a record with the current format
//! number before them; `2[…]` for a record of format 2. Bytes that are no such text stand for themselves.

use std::convert::Infallible;

use minicbor::Encoder;
use minicbor::encode::Error;
use serde_json::Value;
use undaunted_engine::event::FORMAT;

/// The bytes of a record written as text, or the bytes themselves.
pub(super) fn record(given: &[u8]) -> Vec<u8> {
    let (format, text) = match given {
        [format @ b'0'..=b'9', text @ ..] => (format.saturating_sub(b'0'), text),
        text => (FORMAT, text),
    };
    match cbor(text, false) {
        Some(cbor) => [&[format], cbor.as_slice()].concat(),
        None => given.to_vec(),
    }
}

/// The CBOR that a list in JSON stands for, if this is one. Strings become text, or bytes if asked for.
pub(super) fn cbor(text: &[u8], strings_are_bytes: bool) -> Option<Vec<u8>> {
    let text = text.trim_ascii_start();
    let value = text.starts_with(b"[").then(|| serde_json::from_slice(text))?.ok()?;
    let mut encoder = Encoder::new(vec![]);
    put(&value, strings_are_bytes, &mut encoder).ok()?;
    Some(encoder.into_writer())
}

pub(super) fn lines(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = data.split(|byte| *byte == b'\n');
    lines.map(<[u8]>::trim_ascii).filter(|line| !line.is_empty())
}

fn put(value: &Value, bytes: bool, to: &mut Encoder<Vec<u8>>) -> Result<(), Error<Infallible>> {
    let length = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
    match value {
        Value::Null => drop(to.null()?),
        Value::Bool(it) => drop(to.bool(*it)?),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => drop(to.u64(number)?),
            (None, Some(number)) => drop(to.i64(number)?),
            (None, None) => drop(to.f64(number.as_f64().unwrap_or_default())?),
        },
        Value::String(text) if bytes => drop(to.bytes(text.as_bytes())?),
        Value::String(text) => drop(to.str(text)?),
        Value::Array(values) => {
            to.array(length(values.len()))?;
            values.iter().try_for_each(|value| put(value, bytes, to))?;
        }
        Value::Object(fields) => {
            to.map(length(fields.len()))?;
            for (name, value) in fields {
                put(&Value::from(name.as_str()), bytes, to)?;
                put(value, bytes, to)?;
            }
        }
    }
    Ok(())
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
    fn bytes_that_are_no_text_of_a_record_stand_for_themselves() {
        for bytes in [&b"\x01\x82"[..], b"", b"[1, 2", b"{}"] {
            assert_eq!(record(bytes), bytes);
        }
        assert!(Record::decode(&record(b"[-1, 2.5, {\"a\": true}]")).is_err());
    }
}
