//! Where a reference is refused, and what the author is told.

use super::*;

const ARITHMETIC: &str = "stands in arithmetic, where some shells run what a value holds";

/// The refused parts of the text, and the first message without the reference it begins with.
fn refused(text: &str) -> (Vec<&str>, String) {
    let errors = match parse(text) {
        Err(errors) => errors,
        Ok(template) => panic!("{text}\n{template:#?}"),
    };
    let marked = errors.iter().map(|error| &text[error.range.clone()]);
    let message = errors[0].message.clone();
    assert!(errors.iter().all(|error| error.help.is_some()));
    (marked.collect(), message)
}

#[track_caller]
fn all_refused(why: &str, texts: &[&str]) {
    for text in texts {
        let (marked, message) = refused(text);
        assert!(
            marked.iter().all(|mark| *mark == "${item.x}"),
            "{text}: {marked:?}"
        );
        assert_eq!(message, format!("`${{item.x}}` {why}"), "{text}");
    }
}

#[test]
fn arithmetic_takes_no_reference() {
    all_refused(
        ARITHMETIC,
        &[
            "echo $((${item.x} + 1))",
            "echo \"$((1 + (2 * ${item.x})))\"",
            "cat <<E\n$((${item.x}))\nE",
            "echo $((\"${item.x}\"))",
            "echo $(($(cat ${item.x}) + 1))",
            "((a = ${item.x}))",
            "for ((i = 0; i < ${item.x}; i++)); do :; done",
            "echo $[${item.x} + 1]",
            "let a=${item.x}",
            "declare -i a=${item.x}",
            "local -ri a=${item.x}",
            "declare a[${item.x}]=1",
            "a[${item.x}]=1",
            "a=1 b['${item.x}']+=1",
            "a=(b [${item.x}]=c)",
            "echo ${a[${item.x}]}",
            "echo \"${a[$(cat ${item.x})]}\"",
            "echo ${a:${item.x}:1}",
            "[[ ${item.x} -eq 1 ]]",
            "[[ a == b && ( 1 -lt \"${item.x}\" ) ]]",
            "[[ $(cat ${item.x}) -gt 1 ]]",
            "[[ -v ${item.x} ]]",
        ],
    );
    let help = parse("$((${item.x}))").unwrap_err()[0].help.clone();
    assert_eq!(
        help.as_deref(),
        Some("check the value first, and write `${raw:item.x}` if it is trusted")
    );
}

#[test]
fn what_only_looks_like_arithmetic_takes_one() {
    for text in [
        "[ ${item.x} -eq 1 ]",
        "test ${item.x} -gt 1",
        "[[ ${item.x} == a && 1 -eq 1 ]]",
        "[[ 1 -eq 1 && ${item.x} ]]",
        "[[ a ]]; echo ${item.x}",
        "echo let ${item.x}; let a=1; echo ${item.x}",
        "echo a[${item.x}] [${item.x}]",
        "a=b[${item.x}]",
        "( (echo ${item.x}) )",
        "echo $( (echo ${item.x}) )",
        "echo $((1 + 1)) ${item.x}",
        "((a = 1)); echo ${item.x}",
        "a[0]=${item.x}",
        "declare -r a=${item.x}; export b=${item.x}",
        "echo ${a[0]} ${a:1:2} ${item.x}",
    ] {
        assert!(parse(text).is_ok(), "{text}");
    }
}

#[test]
fn a_delimiter_takes_no_reference() {
    all_refused(
        "cannot be the word that ends a here-document",
        &[
            "cat <<${item.x}\n",
            "cat <<'${item.x}'\n",
            "cat <<-E\"${item.x}\"\n",
        ],
    );
    all_refused(
        "stands in a here-document whose quoted delimiter is not a plain word",
        &[
            "cat <<'a b'\n${item.x}\na b\n",
            "cat <<''\n${item.x}\n\n",
            "cat <<'-'\n${item.x}\n-\n",
            "cat <<'$x'\n${item.x}\n$x\n",
        ],
    );
}

#[test]
fn where_no_quotes_would_help() {
    all_refused(
        "cannot be part of the name of a parameter",
        &[
            "echo ${${item.x}}",
            "echo ${a${item.x}}",
            "echo ${!${item.x}}",
            "echo \"${#${item.x}}\"",
        ],
    );
    all_refused(
        "becomes part of a result that the shell splits into words",
        &[
            ": ${a:=${item.x}}",
            ": ${a='${item.x}'}",
            "echo ${a/b/${item.x}}",
            ": ${a:=\"${item.x}\"}",
        ],
    );
    all_refused(
        "is part of a pattern in a here-document, where some shells cannot quote it",
        &[
            "cat <<E\n${a%${item.x}}\nE",
            "cat <<E\n${a#\"${item.x}\"}\nE",
        ],
    );
    all_refused(
        "stands in a quoted here-document inside backquotes",
        &["echo `cat <<'E'\n${item.x}\nE\n`"],
    );
    let (_, message) = refused("echo \"`echo \"$${a}\"`\"");
    assert_eq!(message, "`$${` stands in quotes inside backquotes");
}

#[test]
fn after_a_text_that_shells_read_differently() {
    all_refused(
        "stands behind parentheses that do not pair",
        &[
            "((echo a); echo b); echo ${item.x}",
            "echo a); echo ${item.x}",
            "$(case a in a) :); ${item.x}",
        ],
    );
    all_refused(
        "stands behind backquotes that not all shells read alike",
        &[
            "echo `echo 'a` ${item.x}'",
            "echo \"${a:-\"`echo ${item.x}`\"}\"",
            "cat <<E\n`echo \\\"${item.x}\\\"`\nE",
            r"echo `a \`b \\\`c \\\\\\\`${item.x}",
        ],
    );
    all_refused(
        "stands behind a here-document that not all shells end alike",
        &[
            "x=$(cat <<E)\n${item.x}\nE\n",
            "cat <<E\n$(a\nE\n) ${item.x}",
            "cat <<$(a)\n${item.x}",
            "cat <<E\n\\\nE\n${item.x}\nE\n",
        ],
    );
    all_refused(
        "stands behind a single `'` in `\"${…}\"`, which not all shells read alike",
        &[
            "echo \"${a:-it's}\" ${item.x}",
            "cat <<E\n${a:-it's} ${item.x}\nE",
        ],
    );
    all_refused(
        "stands in or behind a `${…}` that not all shells know",
        &["echo ${ cat ${item.x}; }", "echo ${|a} ${item.x}"],
    );
    all_refused(
        "stands in or behind a `$[`, which is arithmetic in some shells",
        &["echo \"a$[\" ${item.x}"],
    );
}

#[test]
fn names_are_checked_everywhere_but_in_comments() {
    let (marked, message) =
        refused("echo ${itm.x} '${map.total}' \"${step.biuld.output}\" # ${foo.x}");
    assert_eq!(marked, ["${itm.x}", "${map.total}", "${step.biuld.output}"]);
    assert_eq!(message, "`itm.x` is not a known name");
    for (text, message) in [
        ("cat <<'E'\n${foo.x}\nE", "`foo.x` is not a known name"),
        ("cat <<${foo.x}", "`foo.x` is not a known name"),
        ("echo $'${foo[0].x}'", "`foo[0].x` is not a known name"),
        ("echo ${raw:foo}", "`foo` is not a known name"),
        (
            "echo ${item.x%.txt}",
            "`%` is the shell's and cannot follow `item.x`",
        ),
        (
            "echo ${item#a}",
            "`#` is the shell's and cannot follow `item`",
        ),
        (
            "echo ${version:0:1}",
            "`:` is the shell's and cannot follow `version`",
        ),
        (
            "echo ${item[@]}",
            "an index is a number in brackets, as in `[0]`",
        ),
        ("echo ${item.x", "`${item.x` is not closed by a `}`"),
        (
            "echo ${item.x:-$HOME}",
            "the default of `item.x` is plain text, and nothing in it is expanded",
        ),
        (
            "echo `echo ${item.x:-a`",
            "`${item.x` is not closed by a `}`",
        ),
    ] {
        assert_eq!(refused(text).1, message, "{text}");
    }
}

#[test]
fn a_name_that_has_no_item_here_may_be_a_variable() {
    let none = BTreeSet::new();
    let names = Names {
        item: false,
        map: true,
        captured: &none,
        steps: &none,
    };
    let errors = ShellTemplate::parse("for item in a; do echo ${item}; done", &names).unwrap_err();
    assert_eq!(errors[0].message, "`item` is not known here");
    assert_eq!(
        errors[0].help.as_deref(),
        Some("only the commands of a map have an item; a variable of the shell is written `$item`")
    );
    assert!(ShellTemplate::parse("echo $item ${items} ${map.total}", &names).is_ok());
}
