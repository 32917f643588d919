//! The laws of an answer about a file.
//!
//! A text and the answer in, the first broken law out as a sentence. The text is not read again:
//! that the laws can be broken is shown by their own tests, with answers made up for it.

use undaunted_engine::workflow::{CheckedWorkflow, Diagnostic, Source, Span};

use super::law::first_broken;

#[cfg(test)]
mod tests;

/// Nobody reads more problems than this.
const MOST: usize = 1000;

/// The first law the answer breaks.
pub(super) fn broken(source: &Source, checked: &CheckedWorkflow) -> Option<&'static str> {
    let CheckedWorkflow { workflow, diagnostics, omitted } = checked;
    let errors = checked.has_errors();
    let told = diagnostics.len();
    let laws = [
        ("a text with an error is no workflow", !(errors && workflow.is_some())),
        ("a text without an error is a workflow", errors || workflow.is_some()),
        ("no more than a thousand problems are told", told <= MOST),
        ("nothing is left out while there is room", *omitted == 0 || told == MOST),
        ("problems come in the order of the file", diagnostics.is_sorted_by_key(|found| found.span.start)),
    ];
    first_broken(laws).or_else(|| misplaced(source, diagnostics))
}

/// The first law that the place or the words of a problem break.
pub(super) fn misplaced(source: &Source, diagnostics: &[Diagnostic]) -> Option<&'static str> {
    let said = diagnostics.iter().flat_map(|found| {
        let related = found.related.as_ref();
        let words = [Some(&found.message), found.help.as_ref(), related.map(|(_, why)| why)];
        words.into_iter().flatten()
    });
    let related = diagnostics.iter().filter_map(|found| found.related.as_ref());
    let places = diagnostics.iter().map(|found| found.span);
    let places = places.chain(related.map(|(place, _)| *place));
    let speechless = first_broken(said.map(|words| ("a problem has words", !words.is_empty())));
    speechless.or_else(|| outside(source, places))
}

/// The first law that a place in the text breaks.
pub(super) fn outside(source: &Source, mut places: impl Iterator<Item = Span>) -> Option<&'static str> {
    let lines = source.text().split('\n').count();
    places.find_map(|place| misses(source, lines, place))
}

fn misses(source: &Source, lines: usize, place: Span) -> Option<&'static str> {
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
