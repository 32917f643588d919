//! A function fits on one screen: at most 70 lines.
//!
//! Counted from the line of `fn` to its closing brace, comments and blank lines included,
//! because they take up the screen too. A function that is one `match` without a catch-all may be as long
//! as its enum has variants: it would be split only to fit. Tests are free: a scenario told in one go reads
//! better than one cut up.

use crate::tidy::text_file::{TextFile, line_of};
use crate::tidy::{Tree, Violation, rust_code};

const MOST: usize = 70;

pub(crate) fn violations(tree: &Tree) -> Vec<Violation> {
    let files = tree.texts().iter().filter(|file| file.is_rust() && !file.is_test());
    files.flat_map(in_file).collect()
}

fn in_file(file: &TextFile) -> Vec<Violation> {
    let code = file.code();
    let code_for_tests = file.code_for_tests();
    let functions = rust_code::definitions(code).into_iter().filter(|found| found.keyword == "fn");
    functions
        .filter(|function| !code_for_tests.iter().any(|range| range.contains(&function.start)))
        .filter_map(|function| {
            let end = rust_code::body_end(code, function.after_name)?;
            if is_one_match(code.get(function.after_name..end)?) {
                return None;
            }
            let first = line_of(code, function.start);
            let lines = line_of(code, end) - first + 1;
            (lines > MOST).then(|| {
                let what = format!(
                    "`{}` has {lines} lines, {MOST} is the most: it does not fit on a screen",
                    function.name
                );
                file.violation(first, what)
            })
        })
        .collect()
}

/// Whether the body of a function, from its name on, is nothing but an exhaustive match.
fn is_one_match(function: &str) -> bool {
    let inner = function.trim_end().strip_suffix('}').unwrap_or_default();
    let length = inner.trim_end().len();
    let mut found = rust_code::matches(function).into_iter();
    let whole = found.find(|it| it.end == length && it.is_exhaustive());
    let head = whole.and_then(|it| function.get(..it.start));
    head.is_some_and(|head| head.trim_end().ends_with('{'))
}

#[cfg(test)]
mod tests {
    use super::violations;
    use crate::tidy::rules::spoken;

    fn function(lines: usize) -> String {
        format!("fn long(\n) {{\n{}}}\n", "    // \"}\n".repeat(lines - 3))
    }

    #[test]
    fn seventy_lines_are_allowed_and_one_more_is_not() {
        assert_eq!(spoken(violations, [("a.rs", &function(70))]), [""; 0]);
        assert_eq!(
            spoken(violations, [("a.rs", &format!("\n{}", function(71)))]),
            ["a.rs:2: `long` has 71 lines, 70 is the most: it does not fit on a screen"]
        );
    }

    #[test]
    fn a_match_that_names_everything_may_be_longer_and_one_with_a_catch_all_may_not() {
        let arms = "        A::B { c, .. } => {}\n".repeat(80);
        let whole = format!("fn f(a: A) -> B {{\n    match a {{\n{arms}    }}\n}}\n");
        assert_eq!(spoken(violations, [("a.rs", &whole)]), [""; 0]);
        let rest = whole.replacen("A::B { c, .. }", "_", 1);
        assert_eq!(spoken(violations, [("a.rs", &rest)]).len(), 1);
        let more = whole.replace("    match", "    b();\n    match");
        assert_eq!(spoken(violations, [("a.rs", &more)]).len(), 1);
    }

    #[test]
    fn a_method_is_measured_like_a_function() {
        let text = format!("impl A {{\n    fn short() {{}}\n{}}}\n", function(80));
        assert_eq!(spoken(violations, [("a.rs", &text)]).len(), 1);
    }

    #[test]
    fn a_test_may_be_longer() {
        let inside = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function(80));
        assert_eq!(spoken(violations, [("a.rs", &inside), ("tests/b.rs", &function(80))]), [""; 0]);
    }

    #[test]
    fn a_function_after_a_test_module_is_measured() {
        let after = format!("#[cfg(test)]\nmod tests {{\n}}\n{}", function(80));
        assert_eq!(spoken(violations, [("a.rs", &after)]).len(), 1);
    }

    #[test]
    fn a_declaration_does_not_borrow_the_next_body() {
        let text = format!("trait A {{\n    fn short();\n}}\nmod b {{\n{}}}\n", "    // line\n".repeat(80));
        assert_eq!(spoken(violations, [("a.rs", &text)]), [""; 0]);
    }
}
