//! What is wrong with a workflow, in one line.

use undaunted_engine::workflow::{Diagnostic, Severity, Source};

/// All errors in one line: with the key in question if the text is one line of JSON, with line and
/// column if it has several.
pub(crate) fn complaint(source: &Source, found: &[Diagnostic]) -> String {
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
        return "it says nothing".to_owned();
    }
    errors.join("; ")
}

fn key_at(text: &str, at: usize) -> Option<&str> {
    let before = text.get(..at)?.trim_end().strip_suffix(':')?;
    let before = before.trim_end().strip_suffix('"')?;
    let begin = before.rfind('"')?;
    before.get(begin.saturating_add(1)..)
}
