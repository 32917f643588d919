//! Blanks out what is not code: comments, strings and characters.
//!
//! Every line stays a line and every byte keeps its place, so an offset into the result is an
//! offset into the original. It does not care whether the rest is valid Rust.

use super::in_name;

/// The text with comments and literals replaced by spaces.
pub(crate) fn only_code(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(piece) = Piece::first_of(rest) {
        let (taken, left) = rest.split_at(piece.length);
        if piece.is_code {
            code.push_str(taken);
        } else {
            // One space a byte, not a character: offsets must stay true.
            code.extend(taken.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        }
        rest = left;
    }
    code
}

struct Piece {
    length: usize,
    is_code: bool,
}

impl Piece {
    fn first_of(rest: &str) -> Option<Self> {
        let first = rest.chars().next()?;
        let blank = |length| Some(Self { length, is_code: false });
        let code = |length| Some(Self { length, is_code: true });
        match first {
            '/' if rest.starts_with("//") => blank(rest.find('\n').unwrap_or(rest.len())),
            '/' if rest.starts_with("/*") => blank(block_comment(rest)),
            '"' => blank(quoted(rest, '"')),
            '\'' => character(rest).map_or_else(|| code(1), blank),
            _ if in_name(first) => {
                let (word, after) = rest.split_at(rest.find(|c| !in_name(c)).unwrap_or(rest.len()));
                match raw_string(word, after) {
                    Some(length) => blank(word.len() + length),
                    None => code(word.len()),
                }
            }
            _ => code(first.len_utf8()),
        }
    }
}

/// The length of a block comment; Rust lets them nest.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut skip = 0;
    for (at, pair) in rest.as_bytes().windows(2).enumerate() {
        if at < skip {
            continue;
        }
        match pair {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => continue,
        }
        skip = at + 2;
        if depth == 0 {
            return skip;
        }
    }
    rest.len()
}

/// The length of what stands between two quotes, an escaped quote being none.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return at + quote.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

/// The length of a character literal, or nothing for a lifetime or a label.
fn character(rest: &str) -> Option<usize> {
    let mut after = rest.chars().skip(1);
    match (after.next()?, after.next()?) {
        ('\\', _) => Some(quoted(rest, '\'')),
        (one, '\'') => Some(2 + one.len_utf8()),
        _ => None,
    }
}

/// The length of a raw string that follows the prefix `word`.
fn raw_string(word: &str, after: &str) -> Option<usize> {
    if !["r", "br", "cr"].contains(&word) {
        return None;
    }
    let hashes: String = after.chars().take_while(|c| *c == '#').collect();
    let inside = after.strip_prefix(hashes.as_str())?.strip_prefix('"')?;
    let close = format!("\"{hashes}");
    let length = inside.find(&close).map_or(inside.len(), |at| at + close.len());
    Some(hashes.len() + 1 + length)
}

#[cfg(test)]
mod tests {
    use super::only_code;

    /// The code that is left, a single space standing for any blank.
    fn left(text: &str) -> String {
        let code = only_code(text);
        code.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn code_stays_and_comments_go() {
        assert_eq!(left("a // b\nc"), "a c");
        assert_eq!(left("a /* b /* c */ d */ e"), "a e");
        assert_eq!(left("a /*/ b */ c"), "a c");
    }

    #[test]
    fn strings_go_with_their_escapes() {
        assert_eq!(left(r#"f("a\"}{", x)"#), "f( , x)");
        assert_eq!(left(r#"f(b"a\\", x)"#), "f(b , x)");
        assert_eq!(left(r#"f("// a", x)"#), "f( , x)");
    }

    #[test]
    fn raw_strings_go_and_raw_names_stay() {
        assert_eq!(left("f(r##\"a\"# }\"##, x)"), "f( , x)");
        assert_eq!(left("f(br\"a\\\", x)"), "f( , x)");
        assert_eq!(left("r#type { bar\"}\" }"), "r#type { bar }");
    }

    #[test]
    fn characters_go_and_lifetimes_stay() {
        assert_eq!(left(r"'{' '\'' '\u{7d}' '→' &'a str"), "&'a str");
    }

    #[test]
    fn a_byte_keeps_its_place() {
        let text = "/* → */ let é = \"→\n\"; end";
        assert_eq!(only_code(text).find("end"), text.find("end"));
        assert_eq!(only_code(text).lines().count(), 2);
    }

    #[test]
    fn what_never_closes_ends_with_the_file() {
        for text in ["/* a", "\"a", "r#\"a\"", "'\\u"] {
            assert_eq!(left(text), "", "{text}");
        }
    }
}
