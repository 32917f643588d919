//! Where a reference is refused, and with which message.

use super::*;

const ARITHMETIC: &str = "is in arithmetic, where some shells execute a value";

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
        assert!(marked.iter().all(|mark| *mark == "${item.x}"), "{text}: {marked:?}");
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
    assert_eq!(help.as_deref(), Some("check the value first, and write `${raw:item.x}` if it is trusted"));
}

#[test]
fn what_only_looks_like_arithmetic_takes_a_reference() {
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
fn a_name_that_is_evaluated_takes_no_reference() {
    all_refused(
        "is used as a name, which some shells evaluate",
        &[
            "read ${item.x}",
            "IFS= read -r a \"${item.x}\" <f",
            "while read -rp a ${item.x}; do :; done",
            "read -a ${item.x}",
            "echo a | read -r 'a${item.x}'",
            "\\read ${item.x}",
            "'read' -- ${item.x}",
            "command read ${item.x}",
            "builtin -- read ${item.x}",
            "read &>f ${item.x}",
            "echo `read ${item.x}`",
            "echo $(read ${item.x})",
            "printf -v ${item.x} y",
            "printf -v${item.x} y",
            "printf \"-v\" ${item.x} y",
            "test -v ${item.x}",
            "test a = b -o -v ${item.x}",
            "[ -v ${item.x} ]",
            "if [ ! -v \"${item.x}\" ]; then :; fi",
            "[ -R ${item.x} ]",
            "declare ${item.x}=1",
            "declare a=1 b${item.x}=1",
            "typeset -g ${item.x}",
            "local ${item.x}=1",
            "readonly '${item.x}'",
            "export ${item.x}=1",
            "declare -n r=${item.x}",
            "local -rn r='${item.x}'",
            "unset ${item.x}",
            "unset -v a ${item.x}",
            "mapfile ${item.x}",
            "readarray -t -d a ${item.x}",
            "getopts ab ${item.x}",
            "wait -p ${item.x}",
            "wait -fnp ${item.x} 1",
        ],
    );
    let help = parse("read ${item.x}").unwrap_err()[0].help.clone();
    assert_eq!(help.as_deref(), Some("write the name out, or `${raw:item.x}` if the value is trusted"));
    let (marked, _) = refused("[ ${item.y} ${item.x} ]");
    assert_eq!(marked, ["${item.x}"]);
    all_refused(
        "may be read as an option, and with some options shells execute a value",
        &[
            "printf ${item.x} y",
            "printf \"${item.x}\\n\"",
            "printf -${item.x}",
            "wait ${item.x}",
            "declare -${item.x} a",
        ],
    );
    all_refused(
        "becomes the list of an array, where some shells execute a value",
        &["declare -a a=${item.x}", "local -rA a=\"${item.x}\"", "readonly -a a+='${item.x}'"],
    );
}

#[test]
fn code_for_a_shell_takes_no_reference() {
    all_refused(
        "is in code for a shell, which would execute the value",
        &[
            "eval ${item.x}",
            "eval \"a ${item.x}\"",
            "eval a 'b ${item.x}'",
            "eval \"$(echo ${item.x})\"",
            "eval \"$(eval ${item.x})\"",
            "command eval ${item.x}",
            "time -p eval ${item.x}",
            "\\eval ${item.x}",
            "trap 'rm ${item.x}' EXIT",
            "trap -- \"rm ${item.x}\" EXIT",
            "sh -c 'rm ${item.x}'",
            "sh -c \"rm ${item.x}\" _ a",
            "bash -euo pipefail -c 'rm ${item.x}'",
            "bash --norc --rcfile f -lc -- 'rm ${item.x}'",
            "dash $options -c 'rm ${item.x}'",
            "/usr/bin/ksh -ec 'rm ${item.x}'",
            "exec zsh -c 'rm ${item.x}'",
            "exec -a me sh -c 'rm ${item.x}'",
            "A=1 sh -c 'rm ${item.x}'",
            "timeout 9 sh -c 'rm ${item.x}'",
            "sudo -u me env A=b bash -c 'rm ${item.x}'",
            "mapfile -C ${item.x} a",
            "alias a=${item.x}",
            "compgen -W ${item.x}",
        ],
    );
    let help = parse("eval ${item.x}").unwrap_err()[0].help.clone();
    assert_eq!(
        help.as_deref(),
        Some(
            "pass it as an argument, as in `sh -c '… \"$1\"' _ ${item.x}`, \
             or write `${raw:item.x}` if it is trusted"
        )
    );
    for text in [
        "eval \"a ${raw:item.x}\"",
        "read ${raw:item.x}",
        "sh -c '${raw:item.x}' ${item.x}",
        "ssh host \"rm ${item.x}\"",
        "ssh host sh -c 'rm ${item.x}'",
        "echo eval ${item.x}",
        "sh ${item.x} -c ${item.x}",
    ] {
        assert!(parse(text).is_ok(), "{text}");
    }
}

#[test]
fn a_delimiter_takes_no_reference() {
    all_refused(
        "cannot be the delimiter of a here-document",
        &["cat <<${item.x}\n", "cat <<'${item.x}'\n", "cat <<-E\"${item.x}\"\n"],
    );
    all_refused(
        "is in a here-document whose quoted delimiter is not a plain word",
        &[
            "cat <<'a b'\n${item.x}\na b\n",
            "cat <<''\n${item.x}\n\n",
            "cat <<'-'\n${item.x}\n-\n",
            "cat <<'$x'\n${item.x}\n$x\n",
            "cat <<'a\nb'\na\nb\n; echo ${item.x}",
        ],
    );
}

#[test]
fn a_reference_that_quotes_cannot_protect_is_refused() {
    all_refused(
        "cannot be part of a parameter name",
        &["echo ${${item.x}}", "echo ${a${item.x}}", "echo ${!${item.x}}", "echo \"${#${item.x}}\""],
    );
    all_refused(
        "becomes part of a result that the shell splits into words",
        &[": ${a:=${item.x}}", ": ${a='${item.x}'}", "echo ${a/b/${item.x}}", ": ${a:=\"${item.x}\"}"],
    );
    all_refused(
        "is part of a pattern in a here-document, where some shells cannot quote it",
        &["cat <<E\n${a%${item.x}}\nE", "cat <<E\n${a#\"${item.x}\"}\nE"],
    );
    all_refused("is in a quoted here-document inside backquotes", &["echo `cat <<'E'\n${item.x}\nE\n`"]);
    let (_, message) = refused("echo \"`echo \"$${a}\"`\"");
    assert_eq!(message, "`$${` is in quotes inside backquotes");
}

#[test]
fn no_reference_may_follow_a_text_that_shells_read_differently() {
    all_refused(
        "follows unbalanced parentheses",
        &["((echo a); echo b); echo ${item.x}", "echo a); echo ${item.x}", "$(case a in a) :); ${item.x}"],
    );
    all_refused(
        "follows backquotes that shells read differently",
        &[
            "echo `echo 'a` ${item.x}'",
            "echo \"${a:-\"`echo ${item.x}`\"}\"",
            "cat <<E\n`echo \\\"${item.x}\\\"`\nE",
            r"echo `a \`b \\\`c \\\\\\\`${item.x}",
        ],
    );
    all_refused(
        "follows a here-document that shells end differently",
        &[
            "x=$(cat <<E)\n${item.x}\nE\n",
            "cat <<E\n$(a\nE\n) ${item.x}",
            "cat <<$(a)\n${item.x}",
            "cat <<E\n\\\nE\n${item.x}\nE\n",
        ],
    );
    all_refused(
        "follows a single `'` in `\"${…}\"`, which shells read differently",
        &["echo \"${a:-it's}\" ${item.x}", "cat <<E\n${a:-it's} ${item.x}\nE"],
    );
    all_refused(
        "is in or after a `${…}` that not all shells support",
        &["echo ${ cat ${item.x}; }", "echo ${|a} ${item.x}"],
    );
    all_refused("is in or after `$[`, which is arithmetic in some shells", &["echo \"a$[\" ${item.x}"]);
}

#[test]
fn after_a_thousand_errors_it_reads_no_further() {
    for text in [
        "${nothing.x} ".repeat(5000),
        format!("'{}'", "${nothing.x} ".repeat(5000)),
        format!("cat <<'E'\n{}\nE\n", "${nothing.x} ".repeat(5000)),
        format!("eval \"{}\"", "${item.x} ".repeat(5000)),
        "$(read ${item.x}".repeat(5000),
    ] {
        let errors = parse(&text).unwrap_err();
        assert_eq!(errors.len(), 1000);
        assert!(errors.is_sorted_by_key(|error| error.range.start));
    }
}

#[test]
fn names_are_checked_everywhere_but_in_comments() {
    let (marked, message) = refused("echo ${itm.x} '${map.total}' \"${step.biuld.output}\" # ${foo.x}");
    assert_eq!(marked, ["${itm.x}", "${map.total}", "${step.biuld.output}"]);
    assert_eq!(message, "unknown name `itm.x`");
    for (text, message) in [
        ("cat <<'E'\n${foo.x}\nE", "unknown name `foo.x`"),
        ("cat <<${foo.x}", "unknown name `foo.x`"),
        ("echo $'${foo[0].x}'", "unknown name `foo[0].x`"),
        ("echo ${raw:foo}", "unknown name `foo`"),
        ("echo ${item.x%.txt}", "the shell operator `%` cannot follow `item.x`"),
        ("echo ${item#a}", "the shell operator `#` cannot follow `item`"),
        ("echo ${version:0:1}", "the shell operator `:` cannot follow `version`"),
        ("echo ${item[@]}", "brackets must hold a number or a name in quotes, as in `[0]` or `['a b']`"),
        ("echo ${item.x", "`${item.x` has no closing `}`"),
        ("echo ${item.x:-$HOME}", "the default of `item.x` is plain text; nothing in it is expanded"),
        ("echo `echo ${item.x:-a`", "`${item.x` has no closing `}`"),
    ] {
        assert_eq!(refused(text).1, message, "{text}");
    }
}

#[test]
fn a_name_that_has_no_item_here_may_be_a_variable() {
    let none = BTreeSet::new();
    let names = KnownNames { item: false, map: true, captured: &none, steps: &none };
    let errors = ShellTemplate::parse("for item in a; do echo ${item}; done", &names).unwrap_err();
    assert_eq!(errors[0].message, "`item` is not available here");
    assert_eq!(
        errors[0].help.as_deref(),
        Some("only the commands of a map have an item; write `$item` for a shell variable")
    );
    assert!(ShellTemplate::parse("echo $item ${items} ${map.total}", &names).is_ok());
}
