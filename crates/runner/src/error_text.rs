//! Errors and diagnostics in one line of text.

use undaunted_engine::workflow::{Diagnostic, Severity, Source};

/// The message of an error, followed by those of its causes.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(found) = cause {
        text.push_str(": ");
        text.push_str(&found.to_string());
        cause = found.source();
    }
    text
}

/// column if it has several.
pub(crate) fn diagnostics_line(source: &Source, found: &[Diagnostic]) -> String {
    let text = source.text();
    let has_lines = text.trim_end().contains('\n');
    let errors = found.iter().filter(|found| found.code.severity() == Severity::Error);
    let errors = errors.map(|found| {
        let message = found.message.lines().next().unwrap_or_default();
        let message = match key_at(text, found.span.range().start) {
            _ if has_lines => {
                let place = source.position(found.span);
                format!("line {}, column {}: {message}", place.line, place.column)
            }
            Some(key) if !message.contains(&format!("`{key}`")) => format!("`{key}`: {message}"),
            _ => message.to_owned(),
        };
        match &found.help {
            Some(help) => format!("{message} ({help})"),
            None => message,
        }
    });
    let errors: Vec<String> = errors.collect();
    if errors.is_empty() {
        return "the text is empty".to_owned();
    }
    errors.join("; ")
}

fn key_at(text: &str, at: usize) -> Option<&str> {
    let before = text.get(..at)?.trim_end().strip_suffix(':')?.trim_end().strip_suffix('"')?;
    before.get(before.rfind('"')?.saturating_add(1)..)
}
