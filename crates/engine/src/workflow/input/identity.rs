//! The identities of items.
//!
//! An item with a name of its own keeps it: its `id`, or itself if it is a short text. The others are
//! named by the fingerprint of their content, after its beginning if it is bytes. Names are unique and depend only on what the items are,
//! never on their order, so that the results of two runs can be compared. Hence the position decides no
//! conflict either: an own name that several items have is used by none of them; a generated name that
//! equals an item's own name is skipped; contents that share a fingerprint are numbered in the order of
//! their texts.
//!
//! A fingerprint is the hash of the canonical JSON of a value (no whitespace, keys sorted). It must never
//! change, so the JSON is written here: the next version of a library might print a float or escape a
//! letter differently.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

use serde_json::{Number, Value};

use crate::fnv::Fnv1a;
use crate::item_bytes::{item_bytes, readable};
use crate::workflow::filter::sorted_entries;

/// In characters: a name is part of every event of its item.
const LONGEST: usize = 256;
/// Characters of a generated name that are its fingerprint.
const PRINT_DIGITS: usize = 16;
/// The longest beginning of bytes in their name, in bytes.
const SHOWN_BYTES: usize = 60;

pub(super) fn identities(items: &[Value]) -> Vec<String> {
    identities_by(items, fingerprint)
}

fn identities_by(items: &[Value], print: impl Fn(&Value) -> u64) -> Vec<String> {
    let mut names: Vec<Option<String>> = items.iter().map(|_| None).collect();
    let mut taken = BTreeSet::new();
    for (name, index) in own_names(items) {
        if may_be_generated(&name) {
            taken.insert(name.clone());
        }
        put(&mut names, index, name);
    }
    for (index, name) in generated_names(items, &names, &taken, print) {
        put(&mut names, index, name);
    }
    names.into_iter().flatten().collect()
}

fn put(names: &mut [Option<String>], index: usize, name: String) {
    if let Some(slot) = names.get_mut(index) {
        *slot = Some(name);
    }
}

/// Own names that only one item has, with its index.
fn own_names(items: &[Value]) -> Vec<(String, usize)> {
    let claims = items.iter().zip(0..).filter_map(|(item, index)| Some((own_name(item)?, index)));
    let mut claims: Vec<(Cow<'_, str>, usize)> = claims.collect();
    claims.sort_unstable();
    claims
        .chunk_by(|(a, _), (b, _)| a == b)
        .filter_map(|claims| match claims {
            [(name, index)] => Some((name.clone().into_owned(), *index)),
            _ => None,
        })
        .collect()
}

fn own_name(item: &Value) -> Option<Cow<'_, str>> {
    match item {
        Value::String(line) => is_typable(line, LONGEST).then_some(Cow::Borrowed(line.as_str())),
        Value::Object(fields) => match fields.get("id")? {
            Value::String(id) => is_typable(id, LONGEST).then_some(Cow::Borrowed(id)),
            Value::Number(id) => {
                let mut name = String::new();
                write_number(id, &mut name).ok()?;
                Some(Cow::Owned(name))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Whether a user can read and type the name.
fn is_typable(name: &str, longest: usize) -> bool {
    !name.is_empty() && name.chars().nth(longest).is_none() && !name.chars().any(char::is_control)
}

/// Whether the name could be mistaken for one made from a fingerprint, which may follow readable bytes.
fn may_be_generated(name: &str) -> bool {
    let digit = |c: char| matches!(c, '0'..='9' | 'a'..='f');
    name.split(|c| !digit(c)).any(|digits| digits.len() >= PRINT_DIGITS)
}

fn generated_names(
    items: &[Value],
    names: &[Option<String>],
    taken: &BTreeSet<String>,
    print: impl Fn(&Value) -> u64,
) -> Vec<(usize, String)> {
    let unnamed = items.iter().zip(names).enumerate();
    let mut prints: Vec<(u64, usize)> = unnamed
        .filter(|(_, (_, name))| name.is_none())
        .map(|(index, (item, _))| (print(item), index))
        .collect();
    prints.sort_unstable();
    let mut generated = Vec::with_capacity(prints.len());
    for sharers in prints.chunk_by(|(a, _), (b, _)| a == b) {
        let Some((print, _)) = sharers.first() else {
            continue;
        };
        let mut numbers = 1_u64..;
        for index in by_content(items, sharers) {
            let bytes = items.get(index).and_then(item_bytes);
            let free = numbers.by_ref().map(|number| generated_name(bytes.as_deref(), *print, number));
            generated.extend(free.filter(|name| !taken.contains(name)).take(1).map(|name| (index, name)));
        }
    }
    generated
}

fn generated_name(bytes: Option<&[u8]>, print: u64, number: u64) -> String {
    let beginning = bytes.map(|bytes| format!("{}~", readable(bytes, SHOWN_BYTES))).unwrap_or_default();
    match number {
        1 => format!("{beginning}{print:0PRINT_DIGITS$x}"),
        _ => format!("{beginning}{print:0PRINT_DIGITS$x}-{number}"),
    }
}

/// Items that share a fingerprint, equal contents next to each other, in the order of their texts.
fn by_content(items: &[Value], sharers: &[(u64, usize)]) -> Vec<usize> {
    if let [(_, index)] = sharers {
        return vec![*index];
    }
    // Nearly always all are equal; their text is then kept once.
    let mut contents: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (_, index) in sharers {
        let mut text = String::new();
        if let Some(item) = items.get(*index) {
            // Writing to a text cannot fail.
            let _ = write_canonical(item, &mut text);
        }
        contents.entry(text).or_default().push(*index);
    }
    contents.into_values().flatten().collect()
}

/// Equal contents have equal fingerprints, now and in every later version.
fn fingerprint(value: &Value) -> u64 {
    let mut hash = Fnv1a::default();
    // `Fnv1a` never returns an error.
    let _ = write_canonical(value, &mut hash);
    hash.0
}

fn write_canonical(value: &Value, out: &mut impl Write) -> fmt::Result {
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
fn write_number(number: &Number, out: &mut impl Write) -> fmt::Result {
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
mod tests;
