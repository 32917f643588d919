//! Inputs made out of the inputs of a corpus.
//!
//! The mutations of libFuzzer (`fuzz/`) find their way by coverage; without it most of what they make is
//! refused as unreadable. These know just enough of JSON and YAML to leave most mutants readable: a number
//! becomes an extreme one, a string becomes another of the corpus, and a part, a line or the value of a key
//! is left out, repeated or taken from another input. The same seed makes the same mutants.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::Regex;

use crate::random::SeededRandom;

/// Numbers at the ends of their types.
const NUMBERS: &str = "0 1 -1 255 256 600 1000000000 4294967295 4294967296 18446744073709551615 \
    18446744073709551616 1.0000000000000002 1.7976931348623157e308 5e-324 -0.0 null";
/// What means something in YAML, the shell, a filter or a reference, separated by `·`.
const WORDS: &str = "${item}·${item.a:-b}·${raw:item}·${step.a.output}·$${·$(·`·'·\\\"·((·<<'E'\n·\nE\n·#·*a·&a ·!!str ·|\n  ·\
    \n- ·\n  ·\r\n·\t·---\n·~·unlimited·0s· && ·!(· in · contains ·..*·[?@.a]·\u{feff}";
const EXTREMES: [u64; 10] = [0, 1, 2, 7, 0x7f, 0x80, 0xff, 0x7fff_ffff, 0xffff_ffff, u64::MAX];
const BYTES: &[u8] = b"{}[]\",:0-.eE\\u \n\0\x7f\xff\xc3";

/// A sort of part that one input may take from another: the last group of the pattern.
type Parts = LazyLock<Option<Regex>>;

static DIGITS: Parts = LazyLock::new(|| Regex::new("[0-9]+").ok());
/// With the colon behind it, if the string is a key.
static STRINGS: Parts = LazyLock::new(|| Regex::new(r#"(?-u)"[^"]*":?"#).ok());
static LINES: Parts = LazyLock::new(|| Regex::new(r"(?-u)[^\n]*\n|[^\n]+").ok());
/// What follows the first `: ` of a line.
static VALUES: Parts = LazyLock::new(|| Regex::new(r"(?m-u)^[^\n]*?: ([^\n]*)$").ok());

pub(super) fn noise(random: &mut SeededRandom, most: usize) -> Vec<u8> {
    let length = random.below(most + 1);
    let byte = |_| u8::try_from(random.below(256)).unwrap_or_default();
    (0..length).map(byte).collect()
}

/// A member of the corpus, changed in one to three places.
pub(super) fn mutant(random: &mut SeededRandom, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut input = random.one_of(corpus).cloned().unwrap_or_default();
    for _ in 0..=random.below(3) {
        let other = random.one_of(corpus).cloned().unwrap_or_default();
        if str::from_utf8(&input).is_err() && random.chance(2, 3) {
            overwrite(&mut input, random);
        } else if let Some((place, with)) = change(&input, random, &other) {
            input.splice(place, with);
        }
    }
    input
}

/// A range of the input, and what to put in its place.
fn change(input: &[u8], random: &mut SeededRandom, other: &[u8]) -> Option<(Range<usize>, Vec<u8>)> {
    let range = |random: &mut SeededRandom, of: &[u8], most| {
        let (start, end) = random.part(of.len(), most);
        start..end
    };
    let bytes = |of: &[u8], range: Range<usize>| of.get(range).unwrap_or_default().to_vec();
    Some(match random.below(30) {
        0..=8 => (one_part(random, input, &DIGITS)?, one_word(random, NUMBERS, ' ')),
        9..=14 => {
            let string = one_part(random, other, &STRINGS).map(|range| bytes(other, range));
            (one_part(random, input, &STRINGS)?, string.unwrap_or(b"\"\"".to_vec()))
        }
        15 => (range(random, input, 40), vec![]),
        16 => {
            let repeated = range(random, input, 40);
            (repeated.end..repeated.end, bytes(input, repeated))
        }
        17 => {
            let taken = range(random, other, 80);
            (range(random, input, 80), bytes(other, taken))
        }
        18 => (range(random, input, 1), random.one_of(BYTES).copied().into_iter().collect()),
        19 => (0..input.len(), [b"[", input, b",", other, b"]"].concat()),
        20..=22 => (range(random, input, 2), one_word(random, WORDS, '·')),
        23..=25 => taken(input, random, other, &VALUES)?,
        26..=28 => taken(input, random, other, &LINES)?,
        _ => (one_part(random, input, &LINES)?, vec![]),
    })
}

/// A part of the other input, for the place of one of the same sort, or once in three times before it.
fn taken(
    input: &[u8],
    random: &mut SeededRandom,
    other: &[u8],
    sort: &Parts,
) -> Option<(Range<usize>, Vec<u8>)> {
    let taken = one_part(random, other, sort)?;
    let place = one_part(random, input, sort)?;
    let end = if random.chance(1, 3) { place.start } else { place.end };
    Some((place.start..end, other.get(taken)?.to_vec()))
}

fn one_word(random: &mut SeededRandom, words: &str, separator: char) -> Vec<u8> {
    let words: Vec<&str> = words.split(separator).collect();
    random.one_of(&words).map_or_else(Vec::new, |word| word.as_bytes().to_vec())
}

fn one_part(random: &mut SeededRandom, input: &[u8], sort: &Parts) -> Option<Range<usize>> {
    let found = sort.as_ref()?.captures_iter(input).filter_map(|found| found.iter().flatten().last());
    let parts: Vec<Range<usize>> =
        found.filter(|part| !part.as_bytes().ends_with(b"\":")).map(|part| part.range()).collect();
    random.one_of(&parts).cloned()
}

/// Writes an extreme number of 1, 2, 4 or 8 bytes into bytes that are no text, in either byte order.
fn overwrite(input: &mut [u8], random: &mut SeededRandom) {
    let number = random.one_of(&EXTREMES).copied().unwrap_or_default();
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.truncate(1_usize << random.below(4));
    if random.chance(1, 2) {
        bytes.reverse();
    }
    let at = random.below(input.len());
    for (place, byte) in input.iter_mut().skip(at).zip(bytes) {
        *place = byte;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_where_they_stand() {
        let parts = |text: &str, sort: &Parts| -> Vec<String> {
            let all = (0..100).filter_map(|seed| {
                let range = one_part(&mut SeededRandom::new(seed), text.as_bytes(), sort)?;
                Some(text[range].to_owned())
            });
            all.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
        };
        let (json, yaml) = (r#"{"a":12,"b":"7s"}"#, "a: 1\n- b\nc: d: e");
        assert_eq!(parts(json, &DIGITS), ["12", "7"]);
        assert_eq!(parts(json, &STRINGS), ["\"7s\""]);
        assert_eq!(parts(yaml, &LINES), ["- b\n", "a: 1\n", "c: d: e"]);
        assert_eq!(parts(yaml, &VALUES), ["1", "d: e"]);
    }

    #[test]
    fn a_mutant_depends_on_its_seed_only_and_an_empty_corpus_has_mutants() {
        let corpus = [b"{\"a\":1}".to_vec(), b"[2]".to_vec()];
        let made = |seed| mutant(&mut SeededRandom::new(seed), &corpus);
        assert!((0..100).all(|seed| made(seed) == made(seed)));
        assert!((0..100).any(|seed| made(seed) != made(0)));
        for seed in 0..200 {
            mutant(&mut SeededRandom::new(seed), &[]);
            mutant(&mut SeededRandom::new(seed), &[vec![]]);
        }
    }

    #[test]
    fn bytes_that_are_no_text_get_extreme_numbers_and_keep_their_length() {
        let corpus = [[0xfe; 20].to_vec()];
        let made = (0..200).map(|seed| mutant(&mut SeededRandom::new(seed), &corpus));
        let made: Vec<Vec<u8>> = made.filter(|made| made.len() == 20).collect();
        let holds = |number: [u8; 4]| made.iter().any(|it| it.windows(4).any(|it| it == number));
        assert!(made.len() > 60, "{}", made.len());
        assert!(holds(u32::MAX.to_le_bytes()) && holds(1_u32.to_le_bytes()));
        assert!(holds(0x7fff_ffff_u32.to_be_bytes()));
    }
}
