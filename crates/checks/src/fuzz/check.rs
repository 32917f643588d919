//! Bytes that may be a workflow, or a `retry_config` on its own.
//!
//! The answer keeps the laws of diagnostics below, and a workflow also those of `workflow`. A byte order mark
//! and the kind of line ends mean nothing, so every text is checked again with other ones.

use std::collections::BTreeSet;

use undaunted_engine::workflow::{
    CheckedWorkflow, Diagnostic, DiagnosticCode, Operator, Source, Span, check_bytes, check_retry_config,
};

use super::law::{first_broken, uphold};
use super::workflow;

/// YAML's limit for a key without an explicit `?`.
const LONGEST_KEY: usize = 1024;

/// Checks the bytes and returns the words of the diagnostics, and of a workflow its mode and the actions of
/// its commands.
pub fn workflow_check(data: &[u8]) -> BTreeSet<&'static str> {
    let (source, checked) = asked(data.to_vec());
    hold(data, broken(&source, &checked), &checked);
    let (_, again) = asked(data.to_vec());
    let same = answer_text(&checked) == answer_text(&again);
    uphold("the same text gives the same answer", same, &checked.diagnostics);
    let Ok(text) = str::from_utf8(data) else {
        let codes = checked.diagnostics.iter().map(|found| found.code);
        let refused = codes.eq([DiagnosticCode::Syntax]);
        uphold("what is not text is refused as such", refused, &checked);
        return BTreeSet::from(["not text"]);
    };
    check_byte_order_mark(text, &checked);
    check_line_ends(text, &source, &checked);
    let mut outcomes = retry_config(&source);
    let codes = checked.diagnostics.iter().map(|found| found.code.word());
    outcomes.extend(codes);
    if let Some(found) = &checked.workflow {
        hold(data, workflow::broken(&source, found), &checked);
        outcomes.extend(workflow::words(found));
    }
    outcomes
}

fn asked(bytes: Vec<u8>) -> (Source, CheckedWorkflow) {
    check_bytes("any.yaml", bytes, &Operator::default())
}

/// The whole answer, for comparison.
fn answer_text(checked: &CheckedWorkflow) -> String {
    format!("{checked:?}")
}

fn hold(data: &[u8], broken: Option<&'static str>, checked: &CheckedWorkflow) {
    if let Some(law) = broken {
        let text = String::from_utf8_lossy(data);
        uphold(law, false, &(text, &checked.diagnostics));
    }
}

fn check_byte_order_mark(text: &str, checked: &CheckedWorkflow) {
    const MARK: &str = "\u{feff}";
    if text.starts_with(MARK) {
        return;
    }
    let (_, marked) = asked([MARK, text].concat().into_bytes());
    let same = answer_text(checked) == answer_text(&marked);
    let facts = (text, &checked.diagnostics, &marked.diagnostics);
    uphold("a byte order mark means nothing", same, &facts);
}

fn check_line_ends(text: &str, source: &Source, checked: &CheckedWorkflow) {
    if text.contains('\r') {
        return;
    }
    let (other_source, other) = asked(text.replace('\n', "\r\n").into_bytes());
    let facts = (text, &checked.diagnostics, &other.diagnostics);
    let same = problems(source, checked) == problems(&other_source, &other);
    // YAML bounds the length of a key, and line ends within it count: a long key may be refused a line
    // earlier.
    let is_no_yaml = |checked: &CheckedWorkflow| {
        let codes = checked.diagnostics.iter().map(|found| found.code);
        codes.eq([DiagnosticCode::Syntax])
    };
    let bounded = text.len() >= LONGEST_KEY && is_no_yaml(checked) && is_no_yaml(&other);
    uphold("line ends change no problem", same || bounded, &facts);
    let meant = |checked: &CheckedWorkflow| without_places(&format!("{:?}", checked.workflow));
    let same = meant(checked) == meant(&other);
    uphold("line ends change no workflow", same, &facts);
}

/// The code and the line of every diagnostic.
fn problems(source: &Source, checked: &CheckedWorkflow) -> Vec<(DiagnosticCode, usize)> {
    let line = |place| source.position(place).line;
    let found = checked.diagnostics.iter();
    let mut problems: Vec<_> = found.map(|found| (found.code, line(found.span))).collect();
    // Two diagnostics of one line may swap when one of them ends with it.
    problems.sort_by_key(|(code, line)| (*line, *code));
    problems
}

/// The text without the spans.
fn without_places(answer_text: &str) -> String {
    let mut parts = answer_text.split("Span { start: ");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str(part.split_once('}').map_or(part, |(_, after)| after));
    }
    kept
}

fn retry_config(source: &Source) -> BTreeSet<&'static str> {
    match check_retry_config(source) {
        Ok(resolved) => {
            workflow::plan(&resolved.policy);
            BTreeSet::from(["retry_config"])
        }
        Err(problems) => {
            let law = "a retry_config is refused for a reason";
            uphold(law, !problems.is_empty(), &source.text());
            if let Some(law) = misplaced(source, &problems) {
                uphold(law, false, &(source.text(), &problems));
            }
            BTreeSet::new()
        }
    }
}

/// The most diagnostics that an answer lists.
const MOST_DIAGNOSTICS: usize = 1000;

fn broken(source: &Source, checked: &CheckedWorkflow) -> Option<&'static str> {
    let CheckedWorkflow { workflow, diagnostics, omitted } = checked;
    let errors = checked.has_errors();
    let listed = diagnostics.len();
    let laws = [
        ("a text with an error is no workflow", !(errors && workflow.is_some())),
        ("a text without an error is a workflow", errors || workflow.is_some()),
        ("at most a thousand problems are listed", listed <= MOST_DIAGNOSTICS),
        ("nothing is left out while there is room", *omitted == 0 || listed == MOST_DIAGNOSTICS),
        ("problems come in the order of the file", diagnostics.is_sorted_by_key(|found| found.span.start)),
    ];
    first_broken(laws).or_else(|| misplaced(source, diagnostics))
}

fn misplaced(source: &Source, diagnostics: &[Diagnostic]) -> Option<&'static str> {
    let said = diagnostics.iter().flat_map(|found| {
        let related = found.related.as_ref();
        let words = [Some(&found.message), found.help.as_ref(), related.map(|(_, why)| why)];
        words.into_iter().flatten()
    });
    let related = diagnostics.iter().filter_map(|found| found.related.as_ref());
    let places = diagnostics.iter().map(|found| found.span);
    let places = places.chain(related.map(|(place, _)| *place));
    let speechless = first_broken(said.map(|words| ("a problem has words", !words.is_empty())));
    speechless.or_else(|| span_outside_text(source, places))
}

pub(super) fn span_outside_text(
    source: &Source,
    mut places: impl Iterator<Item = Span>,
) -> Option<&'static str> {
    let lines = source.text().split('\n').count();
    places.find_map(|place| misplaced_span(source, lines, place))
}

fn misplaced_span(source: &Source, lines: usize, place: Span) -> Option<&'static str> {
    let range = place.range();
    let (begin, end) = (source.position(place), source.end(place));
    let (first, whole) = source.lines(place, place);
    first_broken([
        ("a place does not end before it begins", range.start <= range.end),
        ("a place lies in the text, between two characters", source.text().get(range.clone()).is_some()),
        ("lines and columns are counted from 1", begin.line >= 1 && begin.column >= 1),
        ("a place ends in a line that is there", end.line <= lines),
        (
            "a place lies in the lines that are shown for it",
            first == begin.line
                && whole.start <= range.start
                && range.end <= whole.end
                && source.text().get(whole).is_some(),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_spans_are_removed_from_an_answer() {
        let listed = "A { at: Span { start: 1, end: 2 }, name: \"b\", to: Span { start: 3, end: 4 } }";
        assert_eq!(without_places(listed), "A { at: , name: \"b\", to:  }");
    }
}
