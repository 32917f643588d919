//! Canonical JSON (no whitespace, keys sorted), and the 64-bit fingerprint of a value: the hash of its
//! canonical text.
//!
//! Identities are made from it and must never change, so nothing is left to a library whose next
//! version may print a float or escape a letter differently.

use std::fmt::{self, Write};

use serde_json::{Number, Value};

use crate::fnv::Fnv1a;
use crate::workflow::filter::sorted_entries;

/// Equal contents have equal fingerprints, now and in every later version.
pub(super) fn fingerprint(value: &Value) -> u64 {
    let mut hash = Fnv1a::default();
    // `Fnv1a` never returns an error.
    let _ = write_canonical(value, &mut hash);
    hash.0
}

pub(super) fn write_canonical(value: &Value, out: &mut impl Write) -> fmt::Result {
    match value {
        Value::Null => out.write_str("null"),
        Value::Bool(true) => out.write_str("true"),
        Value::Bool(false) => out.write_str("false"),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => write_text(text, out),
        Value::Array(elements) => {
            let mut before = '[';
            for element in elements {
                out.write_char(before)?;
                write_canonical(element, out)?;
                before = ',';
            }
            out.write_str(if before == '[' { "[]" } else { "]" })
        }
        Value::Object(fields) => {
            let mut before = '{';
            for (name, field) in sorted_entries(fields) {
                out.write_char(before)?;
                write_text(name, out)?;
                out.write_char(':')?;
                write_canonical(field, out)?;
                before = ',';
            }
            out.write_str(if before == '{' { "{}" } else { "}" })
        }
    }
}

/// An integer is its digits; a float always has a point or an exponent, so `1` and `1.0` differ.
pub(super) fn write_number(number: &Number, out: &mut impl Write) -> fmt::Result {
    if let Some(integer) = number.as_i64() {
        return write!(out, "{integer}");
    }
    if let Some(integer) = number.as_u64() {
        return write!(out, "{integer}");
    }
    let float = number.as_f64().unwrap_or(f64::NAN);
    let size = float.abs();
    if size != 0.0 && !(1e-5..1e16).contains(&size) {
        return write!(out, "{float:e}");
    }
    write!(out, "{float}")?;
    if float.fract() == 0.0 {
        out.write_str(".0")?;
    }
    Ok(())
}

/// Only what JSON demands is escaped: quotes, backslashes and control characters below a blank.
fn write_text(text: &str, out: &mut impl Write) -> fmt::Result {
    out.write_char('"')?;
    for piece in text.split_inclusive(needs_escape) {
        let mut plain = piece.chars();
        match plain.next_back() {
            Some(last) if needs_escape(last) => {
                out.write_str(plain.as_str())?;
                match last {
                    '"' | '\\' => write!(out, "\\{last}")?,
                    _ => write!(out, "\\u{:04x}", u32::from(last))?,
                }
            }
            _ => out.write_str(piece)?,
        }
    }
    out.write_char('"')
}

fn needs_escape(c: char) -> bool {
    c < ' ' || c == '"' || c == '\\'
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_text_of_a_value_never_changes() {
        let mut text = String::new();
        let value = json!({
            "b": [true, false, null, [], {}],
            "a": "é\"\\\n\u{7f}/",
            "": [0, -1, u64::MAX, 1.0, -0.0, 0.1, 1e15, 1e16, 1.5e300, 1e-5, 9.5e-6],
        });
        write_canonical(&value, &mut text).unwrap();
        assert_eq!(
            text,
            concat!(
                r#"{"":[0,-1,18446744073709551615,1.0,-0.0,0.1,1000000000000000.0,1e16,1.5e300,0.00001,9.5e-6],"#,
                "\"a\":\"é\\\"\\\\\\u000a\u{7f}/\",",
                r#""b":[true,false,null,[],{}]}"#
            )
        );
    }

    #[test]
    fn fingerprints_never_change() {
        for (value, print) in [
            (json!(null), "5b9bc4ba528108e4"),
            (json!("a"), "d4272417d7c77eea"),
            (json!({"url": "https://example.org/ä", "n": [1, 2.5, 1e20, true]}), "2c9c279820423d69"),
        ] {
            assert_eq!(format!("{:016x}", fingerprint(&value)), print);
        }
    }
}
