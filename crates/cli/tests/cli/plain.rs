//! Output without what differs from run to run, and JSON as a shape.

use std::collections::BTreeSet;

use serde_json::Value;

/// The text with the id of the job, times and measured durations replaced, and no runs of spaces.
pub(crate) fn plain(text: &str, job: &str) -> String {
    let lines = text.lines().map(|line| plain_line(&line.replace(job, "JOB")));
    lines.map(|line| line + "\n").collect()
}

fn plain_line(line: &str) -> String {
    let indent = line.chars().take_while(|sign| *sign == ' ').count();
    let mut words: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        let last = words.last().map_or("", String::as_str);
        let measured = ["after", "took", "timeline"].contains(&last);
        words.push(match word {
            word if is_time(word) => word.replace(&time_in(word), "TIME"),
            word if measured && is_duration(word) => "SOON".to_owned(),
            word if is_of_now(&words) && is_rough(word) => format!("SOON{}", end_of(word)),
            word => word.to_owned(),
        });
    }
    format!("{}{}", " ".repeat(indent), words.join(" "))
}

/// Whether what comes next depends on the moment: `held by api for …`, `next probe in …`.
fn is_of_now(words: &[String]) -> bool {
    let mut back = words.iter().rev().map(String::as_str);
    match (back.next(), back.next(), back.next()) {
        (Some("(in" | "another"), _, _) | (Some("for"), Some("held"), _) | (Some("for"), _, Some("by")) => {
            true
        }
        (Some("in"), Some(before), _) => ["probe", "fails", "TIME,"].contains(&before),
        _ => false,
    }
}

/// What stands behind a word.
fn end_of(word: &str) -> &str {
    let kept = word.trim_end_matches([',', ';', ')', ':']);
    word.get(kept.len()..).unwrap_or_default()
}

/// A duration, however long.
fn is_rough(word: &str) -> bool {
    let word = word.strip_suffix(end_of(word)).unwrap_or(word);
    word.starts_with(|sign: char| sign.is_ascii_digit()) && word.ends_with(['s', 'm', 'h'])
}

/// `2026-11-15T20:10:38.122Z`, perhaps with something behind it.
fn is_time(word: &str) -> bool {
    word.len() >= 24 && word.get(10..11) == Some("T") && word.get(23..24) == Some("Z")
}

fn time_in(word: &str) -> String {
    word.chars().take(24).collect()
}

fn is_duration(word: &str) -> bool {
    let word = word.trim_start_matches('<');
    word.starts_with(|sign: char| sign.is_ascii_digit()) && word.contains('s')
}

/// Every path of keys in a value; all elements of a list share theirs.
pub(crate) fn shape(value: &Value) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    add(value, "", &mut paths);
    paths
}

fn add(value: &Value, path: &str, paths: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                let path = format!("{path}.{name}");
                paths.insert(path.clone());
                add(inner, &path, paths);
            }
        }
        Value::Array(list) => {
            for inner in list {
                add(inner, &format!("{path}[]"), paths);
            }
        }
        _ => {}
    }
}

/// What is at a place of a value; null if nothing is.
pub(crate) fn at<'v>(value: &'v Value, place: &str) -> &'v Value {
    value.pointer(place).unwrap_or(&Value::Null)
}
