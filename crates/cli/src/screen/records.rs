//! Log records as text, one line each: `WARN Retry budget exhausted for fetch (job 3f9a, item north)`.

use serde_json::Value;
use undaunted_engine::view::log::{LogBody, LogLevel, LogRecord};

use super::plain;

/// Which log records are shown to a user who asked for more, once or twice.
pub(crate) fn is_shown(record: &LogRecord, verbosity: u8) -> bool {
    match verbosity {
        0 => false,
        // The others repeat events of which there are sentences.
        1 => record.level < LogLevel::Debug && record.what.is_named(),
        _ => true,
    }
}

pub(crate) fn line(record: &LogRecord) -> String {
    let level = record.level.word().to_uppercase();
    let what = match &record.what {
        LogBody::Event(word) => word,
        LogBody::Message(text) => text.as_str(),
    };
    let fields = record.fields.iter().filter(|(_, value)| !value.is_null());
    let fields = fields.map(|(name, value)| match value {
        Value::String(text) => format!("{name} {text}"),
        value => format!("{name} {value}"),
    });
    let fields: Vec<String> = fields.collect();
    plain(&format!("  {level} {what} ({})", fields.join(", ")))
}
