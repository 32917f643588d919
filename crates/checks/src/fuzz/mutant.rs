//! Inputs made out of other inputs.
//!
//! Knows just enough about JSON and YAML to leave most mutants readable: a number becomes an extreme
//! one, a text becomes another that stands somewhere in the corpus, a part, a line or what stands
//! behind a colon is left out, repeated or taken from a neighbour. Draws come from the policy's own
//! seed, so the same seed makes the same mutants.

use crate::die::Die;

const NUMBERS: [&str; 16] = [
    "0",
    "1",
    "-1",
    "255",
    "256",
    "600",
    "1000000000",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "1.0000000000000002",
    "1.7976931348623157e308",
    "5e-324",
    "-0.0",
    "null",
];
const EXTREMES: [u64; 10] = [0, 1, 2, 7, 0x7f, 0x80, 0xff, 0x7fff_ffff, 0xffff_ffff, u64::MAX];
const BYTES: &[u8] = b"{}[]\",:0-.eE\\u \n\0\x7f\xff\xc3";
/// What means something to somebody: YAML, the shell, a filter, our own references.
const WORDS: [&str; 32] = [
    "${item}",
    "${item.a:-b}",
    "${raw:item}",
    "${step.a.output}",
    "$${",
    "$(",
    "`",
    "'",
    "\\\"",
    "((",
    "<<'E'\n",
    "\nE\n",
    "#",
    "*a",
    "&a ",
    "!!str ",
    "|\n  ",
    "\n- ",
    "\n  ",
    "\r\n",
    "\t",
    "---\n",
    "~",
    "unlimited",
    "0s",
    " && ",
    "!(",
    " in ",
    " contains ",
    "..*",
    "[?@.a]",
    "\u{feff}",
];

/// Bytes of no meaning.
pub(super) fn noise(die: &mut Die, most: usize) -> Vec<u8> {
    let length = die.below(most + 1);
    let byte = |_| u8::try_from(die.below(256)).unwrap_or_default();
    (0..length).map(byte).collect()
}

/// A member of the corpus, changed in one to three places.
pub(super) fn mutant(die: &mut Die, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut input = die.one_of(corpus).cloned().unwrap_or_default();
    for _ in 0..=die.below(3) {
        change(&mut input, die, corpus);
    }
    input
}

fn change(input: &mut Vec<u8>, die: &mut Die, corpus: &[Vec<u8>]) {
    let other = die.one_of(corpus).cloned().unwrap_or_default();
    if str::from_utf8(input).is_err() && die.falls(2, 3) {
        return overwrite(input, die);
    }
    match die.below(30) {
        0..=8 => {
            let number = die.one_of(&NUMBERS).copied().unwrap_or_default();
            replace(input, die, numbers, number.as_bytes());
        }
        9..=14 => {
            let text = die.one_of(&texts(&other)).copied();
            let text = text.and_then(|(start, end)| other.get(start..end));
            replace(input, die, texts, text.unwrap_or(b"\"\""));
        }
        15 => {
            let (start, end) = die.part(input.len(), 40);
            input.drain(start..end);
        }
        16 => {
            let (start, end) = die.part(input.len(), 40);
            input.splice(end..end, input.get(start..end).unwrap_or_default().to_vec());
        }
        17 => {
            let (start, end) = die.part(other.len(), 80);
            let (at, until) = die.part(input.len(), 80);
            input.splice(at..until, other.get(start..end).unwrap_or_default().to_vec());
        }
        18 => {
            let byte = die.one_of(BYTES).copied();
            let (at, until) = die.part(input.len(), 1);
            input.splice(at..until, byte);
        }
        19 => *input = [b"[", input.as_slice(), b",", &other, b"]"].concat(),
        20..=22 => {
            let word = die.one_of(&WORDS).copied().unwrap_or_default();
            let (at, until) = die.part(input.len(), 2);
            input.splice(at..until, word.bytes());
        }
        23..=25 => take_part(input, die, &other, settings),
        26..=28 => take_part(input, die, &other, lines),
        _ => replace(input, die, lines, b""),
    }
}

/// Writes an extreme number of 1, 2, 4 or 8 bytes over what stands somewhere in bytes that are no
/// text, in either order of its bytes.
fn overwrite(input: &mut [u8], die: &mut Die) {
    let number = die.one_of(&EXTREMES).copied().unwrap_or_default();
    let width = 1_usize << die.below(4);
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.truncate(width);
    if die.falls(1, 2) {
        bytes.reverse();
    }
    let at = die.below(input.len());
    for (place, byte) in input.iter_mut().skip(at).zip(bytes) {
        *place = byte;
    }
}

/// Puts `with` in the place of one of the parts that `find` finds.
fn replace(input: &mut Vec<u8>, die: &mut Die, find: fn(&[u8]) -> Vec<(usize, usize)>, with: &[u8]) {
    if let Some(&(start, end)) = die.one_of(&find(input)) {
        input.splice(start..end, with.iter().copied());
    }
}

/// Puts a part of the other in the place of one of the same sort, or once in three times before it.
fn take_part(input: &mut Vec<u8>, die: &mut Die, other: &[u8], find: fn(&[u8]) -> Vec<(usize, usize)>) {
    let taken = die.one_of(&find(other)).copied();
    let taken = taken.and_then(|(start, end)| other.get(start..end));
    let place = die.one_of(&find(input)).copied();
    if let (Some(taken), Some((start, end))) = (taken, place) {
        let end = if die.below(3) == 0 { start } else { end };
        input.splice(start..end, taken.iter().copied());
    }
}

/// Where lines stand, each with its end.
fn lines(input: &[u8]) -> Vec<(usize, usize)> {
    let mut start = 0;
    let mut found = vec![];
    for line in input.split_inclusive(|byte| *byte == b'\n') {
        found.push((start, start + line.len()));
        start += line.len();
    }
    found
}

/// Where something stands behind a colon, up to the end of its line.
fn settings(input: &[u8]) -> Vec<(usize, usize)> {
    let behind_colon = |(start, end): (usize, usize)| {
        let line = input.get(start..end)?;
        let colon = line.windows(2).position(|pair| pair == b": ")?;
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        Some((start + colon + 2, start + text.len()))
    };
    lines(input).into_iter().filter_map(behind_colon).collect()
}

/// Where digits stand together.
fn numbers(input: &[u8]) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = vec![];
    for (at, _) in input.iter().enumerate().filter(|(_, byte)| byte.is_ascii_digit()) {
        match found.last_mut() {
            Some((_, end)) if *end == at => *end = at + 1,
            _ => found.push((at, at + 1)),
        }
    }
    found
}

/// Where something stands between quotation marks, with them, and is not the name of a value.
fn texts(input: &[u8]) -> Vec<(usize, usize)> {
    let quotes = input.iter().enumerate().filter(|(_, byte)| **byte == b'"');
    let quotes: Vec<usize> = quotes.map(|(at, _)| at).collect();
    let pairs = quotes.chunks_exact(2);
    pairs
        .filter_map(|pair| Some((*pair.first()?, *pair.last()? + 1)))
        .filter(|(_, end)| input.get(*end) != Some(&b':'))
        .collect()
}

#[cfg(test)]
mod tests {
    use undaunted_policy::Seed;

    use super::*;

    #[test]
    fn numbers_and_texts_are_found_where_they_stand() {
        let json = br#"{"a":12,"b":"7s"}"#;
        let parts = |found: Vec<(usize, usize)>| -> Vec<&str> {
            let part = |(start, end)| str::from_utf8(&json[start..end]).unwrap();
            found.into_iter().map(part).collect()
        };
        assert_eq!(parts(numbers(json)), ["12", "7"]);
        assert_eq!(parts(texts(json)), ["\"7s\""]);
    }

    #[test]
    fn lines_and_settings_are_found_where_they_stand() {
        let yaml = b"a: 1\n- b\nc: d: e";
        let parts = |found: Vec<(usize, usize)>| -> Vec<&str> {
            let part = |(start, end)| str::from_utf8(&yaml[start..end]).unwrap();
            found.into_iter().map(part).collect()
        };
        assert_eq!(parts(lines(yaml)), ["a: 1\n", "- b\n", "c: d: e"]);
        assert_eq!(parts(settings(yaml)), ["1", "d: e"]);
    }

    #[test]
    fn a_mutant_depends_on_its_draws_only() {
        let corpus = [b"{\"a\":1}".to_vec(), b"[2]".to_vec()];
        let made = |seed| mutant(&mut Die::of(Seed(seed).draws(0, 0, 1)), &corpus);
        assert!((0..100).all(|seed| made(seed) == made(seed)));
        assert!((0..100).any(|seed| made(seed) != made(0)));
    }

    #[test]
    fn bytes_that_are_no_text_get_extreme_numbers_and_keep_their_length() {
        let corpus = [[0xfe; 20].to_vec()];
        let made = (0..200).map(|seed| mutant(&mut Die::new(seed), &corpus));
        let made: Vec<Vec<u8>> = made.filter(|made| made.len() == 20).collect();
        let holds = |number: [u8; 4]| made.iter().any(|it| it.windows(4).any(|it| it == number));
        assert!(made.len() > 60, "{}", made.len());
        assert!(holds(u32::MAX.to_le_bytes()) && holds(1_u32.to_le_bytes()));
        assert!(holds(0x7fff_ffff_u32.to_be_bytes()));
    }

    #[test]
    fn nothing_can_be_made_of_nothing() {
        for seed in 0..200 {
            mutant(&mut Die::of(Seed(seed).draws(0, 0, 1)), &[]);
            mutant(&mut Die::of(Seed(seed).draws(0, 0, 1)), &[vec![]]);
        }
    }
}
