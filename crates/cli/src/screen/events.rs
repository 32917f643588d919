//! Events for people: one line each.

use std::io::{self, Write};

use serde_json::Value;
use undaunted_engine::view::EventView;

/// What people can do without.
const LEFT_OUT: &[&str] = &[
    "seq",
    "at",
    "type",
    "item",
    "command",
    "attempt",
    "correlation_id",
    "index",
];

/// `12  19:04:47.120  retry_scheduled  fetch  attempt 1  retry 1, delay_ms 1000, …`
pub(crate) fn line(out: &mut impl Write, event: &EventView) -> io::Result<()> {
    let field = |name: &str| {
        let mut fields = event.fields().iter();
        fields.find_map(|(known, value)| (*known == name).then_some(value))
    };
    let text = |name: &str| field(name).map(plain).unwrap_or_default();
    let item = match (field("item"), field("command")) {
        (Some(item), Some(command)) if item != command => {
            format!("  {}, {}", plain(item), plain(command))
        }
        (Some(item), _) => format!("  {}", plain(item)),
        _ => String::new(),
    };
    let attempt = match field("attempt") {
        Some(attempt) => format!("  attempt {attempt}"),
        None => String::new(),
    };
    let rest = event.fields().iter();
    let rest = rest.filter(|(name, value)| !LEFT_OUT.contains(name) && !value.is_null());
    let rest: Vec<String> = rest
        .map(|(name, value)| format!("{name} {}", plain(value)))
        .collect();
    let rest = if rest.is_empty() {
        String::new()
    } else {
        format!("  {}", rest.join(", "))
    };
    writeln!(
        out,
        "{:>5}  {}  {:<18}{item}{attempt}{rest}",
        text("seq"),
        text("at"),
        text("type")
    )
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => short(text).escape_debug().to_string(),
        other => other.to_string(),
    }
}

/// The beginning of a text; `--json` has the whole.
fn short(text: &str) -> String {
    const MOST: usize = 200;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
