//! Events as text: one line each.

use std::io::{self, Write};
use std::time::Duration;

use serde_json::Value;
use undaunted_engine::view::EventView;

use super::count;
use super::duration::short as duration;
use super::plain;

const SHOWN_ELSEWHERE: &[&str] =
    &["seq", "at", "type", "item", "command", "attempt", "correlation_id", "index"];

/// Fields of an attempt that passed a breaker.
const ADMISSION: &[&str] = &["breaker", "probe"];

/// `12  19:04:47.120  retry_scheduled  fetch  attempt 1  retry 1, delay_ms 1000, …`
pub(crate) fn line(out: &mut impl Write, event: &EventView) -> io::Result<()> {
    let field = |name: &str| {
        let mut fields = event.fields().iter();
        fields.find_map(|(known, value)| (*known == name).then_some(value))
    };
    let text = |name: &str| field(name).filter(|value| !value.is_null()).map(shown).unwrap_or_default();
    let item = match (field("item"), field("command")) {
        (Some(item), Some(command)) if item != command => {
            format!("  {}, {}", shown(item), shown(command))
        }
        (Some(item), _) => format!("  {}", shown(item)),
        _ => String::new(),
    };
    let attempt = match field("attempt") {
        Some(attempt) => format!("  attempt {attempt}"),
        None => String::new(),
    };
    // An admission is shown only for a probe.
    let admitted = field("probe") == Some(&Value::Bool(false));
    let rest = event.fields().iter().filter(|(name, value)| {
        let is_hidden = SHOWN_ELSEWHERE.contains(name) || admitted && ADMISSION.contains(name);
        !is_hidden && !value.is_null()
    });
    let rest: Vec<String> = rest.map(|(name, value)| format!("{name} {}", shown(value))).collect();
    let rest = shared(&field).unwrap_or_else(|| rest.join(", "));
    let rest = if rest.is_empty() { rest } else { format!("  {rest}") };
    writeln!(out, "{:>5}  {}  {:<18}{item}{attempt}{rest}", text("seq"), text("at"), text("type"))
}

/// The sentence of an event about a limit that items share.
fn shared<'v>(field: &dyn Fn(&str) -> Option<&'v Value>) -> Option<String> {
    let text = |name: &str| field(name).filter(|value| !value.is_null()).map(shown);
    let or_none = |name: &str| text(name).unwrap_or_default();
    let or_zero = |name: &str| text(name).unwrap_or_else(|| "0".to_owned());
    Some(match text("type")?.as_str() {
        "completion_reached" => format!(
            "{}: {}; {} of {} succeeded, {} failed, {} missing",
            or_none("step"),
            or_none("reason"),
            or_zero("completed"),
            or_zero("total"),
            or_zero("failed"),
            or_zero("missing")
        ),
        "late_result" => {
            let reason = text("reason").map(|reason| format!(" ({reason})"));
            let counts = match text("policy").as_deref() {
                Some("update_result") => "counted (update_result)",
                _ => "not counted (log_only)",
            };
            let reason = reason.unwrap_or_default();
            format!("{}{reason}, {counts}", or_none("result"))
        }
        "pool_topped_up" => {
            let asked = or_zero("asked");
            let noun = if asked == "1" { "retry" } else { "retries" };
            let (added, total) = (or_zero("added"), or_zero("total_budget"));
            format!("{added} of {asked} requested {noun} added, {total} in total")
        }
        kind => return of_breaker(kind, field, &text),
    })
}

fn of_breaker<'v>(
    kind: &str,
    field: &dyn Fn(&str) -> Option<&'v Value>,
    text: &dyn Fn(&str) -> Option<String>,
) -> Option<String> {
    let breaker = || text("breaker").unwrap_or_default();
    let probe = text("until").map(|until| format!(", next probe at {until}")).unwrap_or_default();
    Some(match kind {
        "held" => {
            let why = match text("why").as_deref() {
                Some("rule") => "by a rule, ",
                _ => "",
            };
            let left = match field("attempts_left").and_then(Value::as_u64) {
                Some(left) => count(left, "attempt", "attempts"),
                None => "unlimited attempts".to_owned(),
            };
            let expires = text("expires_at").map(|expires| format!(", fails at {expires}"));
            let expires = expires.unwrap_or_default();
            format!("{why}by {}{probe}, {left} left{expires}", breaker())
        }
        "released" => {
            let held = field("held_ms").and_then(Value::as_u64).unwrap_or_default();
            let held = duration(Duration::from_millis(held));
            format!("by {}, held for {held}", breaker())
        }
        "breaker_opened" => {
            let why = match text("why").as_deref() {
                Some("rule") => "a rule tripped it".to_owned(),
                Some("probe") => "the probe failed".to_owned(),
                _ => match field("failures").and_then(Value::as_u64) {
                    Some(1) => "1 failure".to_owned(),
                    failures => format!("{} failures in a row", failures.unwrap_or_default()),
                },
            };
            format!("{}: {why}{probe}", breaker())
        }
        "breaker_half_opened" => format!("{}: probing", breaker()),
        "breaker_closed" => format!("{}: commands start again", breaker()),
        "breaker_configured" => format!("{}: {}", breaker(), changes(field("changes")?)),
        _ => return None,
    })
}

/// `failure_threshold 5 → 3, recovery_timeout 1m → 30s`
fn changes(changes: &Value) -> String {
    let list = changes.as_array().map(Vec::as_slice).unwrap_or_default();
    let parts = list.iter().map(|change| {
        let part = |name: &str| change.get(name).map(shown).unwrap_or_default();
        let setting = part("setting");
        let setting = setting.strip_prefix("breaker.").unwrap_or(&setting);
        format!("{setting} {} → {}", part("old"), part("new"))
    });
    parts.collect::<Vec<_>>().join(", ")
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => plain(&short(text)),
        other => plain(&other.to_string()),
    }
}

fn short(text: &str) -> String {
    const MOST: usize = 200;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
