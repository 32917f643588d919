//! Finds `match` expressions and the patterns of their arms.

use super::in_name;

/// A `match` expression.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Match<'a> {
    /// The byte at which the keyword begins.
    pub(crate) start: usize,
    /// The byte after its closing brace.
    pub(crate) end: usize,
    pub(crate) arms: Vec<Arm<'a>>,
}

/// An arm, up to its arrow.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arm<'a> {
    /// The byte at which the pattern begins.
    pub(crate) start: usize,
    /// The pattern with its guard.
    pub(crate) pattern: &'a str,
}

impl Arm<'_> {
    /// Whether it takes whatever the other arms leave: `_`, or a name for all of it.
    pub(crate) fn takes_all(&self) -> bool {
        let named = self.pattern.starts_with(|first: char| first.is_lowercase());
        self.pattern == "_" || (named && self.pattern.chars().all(in_name))
    }
}

impl Match<'_> {
    /// Whether its arms name everything they take.
    pub(crate) fn is_exhaustive(&self) -> bool {
        !self.arms.iter().any(Arm::takes_all)
    }
}

/// Every `match` in code without comments and literals, in order; those inside of others too.
pub(crate) fn matches(code: &str) -> Vec<Match<'_>> {
    let found = code.match_indices("match ").map(|(start, _)| start);
    let found = found.filter(|start| {
        let before = code.get(..*start).and_then(|text| text.chars().next_back());
        before.is_none_or(|before| !in_name(before))
    });
    found.filter_map(|start| read(code, start)).collect()
}

fn read(code: &str, start: usize) -> Option<Match<'_>> {
    let body = reach(code, start, |rest| rest.starts_with(['{', ';']))?;
    let mut at = body + 1;
    let mut arms = vec![];
    loop {
        at = skip(code, at, |it| it.is_whitespace() || it == ',');
        if code.get(at..)?.starts_with('}') {
            let end = at + 1;
            return Some(Match { start, end, arms });
        }
        let arrow = reach(code, at, |rest| rest.starts_with("=>"))?;
        let pattern = code.get(at..arrow)?.trim();
        arms.push(Arm { start: at, pattern });
        at = skip(code, arrow + 2, char::is_whitespace);
        at = if code.get(at..)?.starts_with('{') {
            reach(code, at + 1, |rest| rest.starts_with('}'))? + 1
        } else {
            reach(code, at, |rest| rest.starts_with([',', '}']))?
        };
    }
}

/// The first byte from here on that is inside of no further brackets and begins with this.
fn reach(code: &str, from: usize, wanted: impl Fn(&str) -> bool) -> Option<usize> {
    let rest = code.get(from..)?;
    let mut depth = 0_usize;
    for (at, character) in rest.char_indices() {
        if depth == 0 && wanted(rest.get(at..)?) {
            return Some(from + at);
        }
        match character {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

fn skip(code: &str, from: usize, skipped: impl Fn(char) -> bool) -> usize {
    let rest = code.get(from..).unwrap_or_default();
    from + rest.find(|it| !skipped(it)).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::matches;

    fn patterns(code: &str) -> Vec<Vec<&str>> {
        let found = matches(code).into_iter();
        let patterns = found.map(|it| it.arms.into_iter().map(|arm| arm.pattern).collect());
        patterns.collect()
    }

    #[test]
    fn arms_are_found_whatever_they_do() {
        let code = "match f(|x| { x }, [1; 2]) {\n    A::B { c, .. } if c > 1 => { d() }\n    \
                    A::E(_) | A::F => if g { h } else { i },\n    j => K { l: 1 }.m(),\n    _ => n\n}";
        let expected = ["A::B { c, .. } if c > 1", "A::E(_) | A::F", "j", "_"];
        assert_eq!(patterns(code), [expected]);
    }

    #[test]
    fn a_match_inside_of_another_is_one_of_its_own() {
        let code = "match a { B => match c { D => 1, _ => 2 }, E => {} }";
        assert_eq!(patterns(code), [["B", "E"], ["D", "_"]]);
        let found = matches(code);
        assert!(found[0].is_exhaustive() && !found[1].is_exhaustive());
        assert_eq!(found[0].end, code.len());
    }

    #[test]
    fn words_that_only_end_like_it_are_none() {
        assert_eq!(patterns("rematch a { b => c }"), [[""; 0]; 0]);
    }
}
