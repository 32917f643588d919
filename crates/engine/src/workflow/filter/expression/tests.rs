//! What filters mean, and how they are refused.

use super::*;
use serde_json::json;

fn holds(filter: &str) -> bool {
    let item = json!({
        "n": 5, "f": 2.5, "big": 9_007_199_254_740_993_u64, "s": "needle in hay", "t": true, "no": false,
        "null": null, "empty": "", "zero": 0, "list": [1, "a", [2]], "map": {"k": null}, "in": 1, "other": 5
    });
    Filter::parse(filter).unwrap_or_else(|error| panic!("{filter}: {error:?}")).matches(&item)
}

/// The filters are separated by semicolons.
fn all_hold(filters: &str) {
    for filter in filters.split(';') {
        assert!(holds(filter), "{filter}");
    }
}

fn none_holds(filters: &str) {
    for filter in filters.split(';') {
        assert!(!holds(filter), "{filter}");
    }
}

#[test]
fn values_of_one_type_are_compared() {
    all_hold(
        r#"item.n == 5; n == 5.0; n != 6; n > 2.5; f < n; n >= 5; n <= 5; n == other; s == 'needle in hay';
        s > 'a'; empty == ""; t == true; no < t; -1 < zero; list == [1, 'a', [2.0]]; list < [2];
        (n == 5) == true"#,
    );
    none_holds("n == 6; n < 5; n > 5; f >= 2.6; s == 'needle'; t == false");
}

#[test]
fn large_integers_keep_their_last_digit() {
    all_hold(
        "big == 9007199254740993; big != 9007199254740992; big > 9007199254740992.0;
        big < 9007199254740994.0",
    );
}

#[test]
fn values_of_different_types_are_only_different() {
    all_hold("n != '5'; s != 1; t != 1; list != 1");
    none_holds("n == '5'; n < '6'; n <= '5'; n >= '5'; zero == false; empty == false");
}

#[test]
fn a_missing_field_is_null_and_null_has_no_order() {
    all_hold("gone == null; null == gone.deeper[3]; gone != 1; item.null == null; n != null");
    none_holds("gone < 1; gone <= 1; gone > 1; gone >= 1; gone <= null; gone >= gone; gone == 0");
}

#[test]
fn a_value_alone_holds_unless_missing_null_or_false() {
    all_hold("n; zero; empty; t; list; map; item; true; 0; item['in']");
    none_holds("gone; item.null; no; map.k; false; null; list[7]");
}

#[test]
fn contains_looks_into_text_arrays_and_objects() {
    all_hold(
        "s contains 'needle'; contains(s, 'hay'); list contains 'a'; list contains 1.0; list contains [2];
        map contains 'k'; contains(item, 'n'); ['x', 5] contains n;
        CONTAINS ( s , 'in' ) && s not contains 'x'; contains(s, '') == true",
    );
    none_holds(
        "s contains 'Needle'; list contains 2; map contains 'x'; n contains 5; s contains 1;
        gone contains 'a'; list contains null; contains(no, false)",
    );
}

#[test]
fn in_is_contains_with_its_sides_swapped() {
    all_hold(
        "n in [1, 5]; n in[5]; 'needle' in s; 'k' in map; 'a' in list; gone in [null]; n not in [1, 2];
        not n in [1, 2]; 5 in [5,]",
    );
    none_holds("n in []; n in ['5']; gone in [1]; n in gone; n not in [5]");
}

#[test]
fn and_binds_tighter_than_or_and_not_tighter_than_both() {
    all_hold(
        "t || no && no; (t || no) && !no; not no and not gone; T == null OR n == 5 AND t; !no && !gone; !!t;
        not not t; not !t or t; !(n == 6); not n == 6; !contains(s, 'z')",
    );
    none_holds("(t || no) && no; !t || no; not (t or no); !(no || t); not n == 5");
}

#[test]
fn a_field_named_like_a_word_of_the_language_needs_the_word_item() {
    all_hold("item.in == 1; item['in'] == 1; item.null == null; item.not == null");
}

#[track_caller]
fn refused(text: &str, marked: &str, message: &str, help: &str) {
    let error = Filter::parse(text).unwrap_err();
    assert_eq!(
        (&text[error.range.clone()], error.message.as_str(), error.help.as_deref().unwrap_or_default()),
        (marked, message, help),
        "{text} {:?}",
        error.range
    );
}

#[test]
fn operators_of_other_languages_are_refused_with_the_one_to_write() {
    refused("a = 1", "=", "`=` is not an operator", "write `==`");
    refused("a === 1", "===", "`===` is not an operator", "write `==`");
    refused("a !== 1", "!==", "`!==` is not an operator", "write `!=`");
    refused("a <> 1", "<>", "`<>` is not an operator", "write `!=`");
    refused("a & b", "&", "`&` is not an operator", "write `&&`");
    refused("a | b", "|", "`|` is not an operator", "write `||`");
    refused("a == ‘x’", "‘", "unexpected `‘`", "write text in straight quotes: 'text' or \"text\"");
    refused("a + 1 > 2", "+", "unexpected `+`", "arithmetic is not supported in a filter");
    refused("$.a == 1", "$", "unexpected `$`", "write `item` for the item and `item.name` for its field");
    refused("a > .5", ".", "unexpected `.`", "write `0.5`, not `.5`");
}

#[test]
fn an_ambiguous_filter_is_refused() {
    let negate = "write `!(a == b)` to negate the whole comparison";
    refused("!a == b", "!", "`!` before a comparison needs parentheses", negate);
    refused("!(a) in [1]", "!", "`!` before a comparison needs parentheses", negate);
    let chain = "write `1 < a && a < 5`, or use parentheses";
    refused("1 < a < 5", "<", "comparisons cannot be chained", chain);
}

#[test]
fn a_mistake_is_marked_where_it_is() {
    refused("", "", "the filter is empty", "remove it to take every item");
    refused("  ", "  ", "the filter is empty", "remove it to take every item");
    refused("a == ", "", "expected a field or a value, found the end", "");
    refused("a == && b", "&&", "expected a field or a value, found `&&`", "");
    refused("a b", "b", "expected `&&`, `||` or the end, found `b`", "");
    refused("(a", "", "expected `)`, found the end", "");
    refused("a)", ")", "expected `&&`, `||` or the end, found `)`", "");
    refused("a in [1 2]", "2", "expected `,` or `]`, found `2`", "");
    refused(
        "a in [b]",
        "b",
        "a list can hold only values, not fields",
        "write text in quotes: ['open', 'closed']",
    );
    refused("a == 'x", "'x", "the string is not closed", "add a closing `'`");
    refused("a not b", "b", "expected `in` or `contains` after `not`, found `b`", "");
    refused("contains(a)", ")", "expected `,`, found `)`", "");
    let number = "write numbers as in JSON, and text in quotes";
    refused("a == 12abc", "12abc", "`12abc` is not a number", number);
    refused("a == 1-2", "1-2", "`1-2` is not a number", number);
    refused("a == 1e999", "1e999", "`1e999` is not a number", number);
    refused(
        "is_null(a)",
        "is_null",
        "unknown function `is_null`",
        "the only function is `contains(a, b)`; write `a == null` to test for a missing field",
    );
    refused(
        "contains == 1",
        "contains",
        "`contains` needs a value before it",
        "write `a contains b` or `contains(a, b)`; a field of that name is `item.contains`",
    );
}

#[test]
fn nesting_is_bounded() {
    let nested = |open: &str, close: &str, n: usize| format!("{}1{}", open.repeat(n), close.repeat(n));
    for (open, close) in
        [("(", ")"), ("!", ""), ("not ", ""), ("[", "]"), ("contains(1,", ")"), ("(1 == ", ")")]
    {
        assert!(Filter::parse(&nested(open, close, 100)).is_ok(), "{open}");
        let error = Filter::parse(&nested(open, close, 101)).unwrap_err();
        assert_eq!(error.message, "the filter is nested more than 100 levels deep", "{open}");
        assert!(error.range.start >= 100 && error.range.start < 1300, "{open} {:?}", error.range);
    }
}

#[test]
fn length_is_bounded_and_long_chains_are_not_deep() {
    let chain = vec!["a"; 2000].join(" && ");
    assert!(Filter::parse(&chain).is_ok());
    assert!(Filter::parse(&vec!["!(a in [1])"; 500].join(" || ")).is_ok());
    let error = Filter::parse(&format!("{chain} || {chain}")).unwrap_err();
    assert_eq!(error.range.start, 10_000);
}
