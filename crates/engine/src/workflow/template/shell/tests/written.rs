//! The text that is written, context by context. `V` in a table is the variable.

use super::*;

fn written(text: &str) -> String {
    script(text, "value").text.replace("${__undaunted_1}", "V")
}

#[track_caller]
fn table(rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        assert_eq!(written(text), *expected, "{text}");
    }
}

#[test]
fn a_variable_is_written_by_the_quotes_around_it() {
    table(&[
        ("echo ${item.x}", r#"echo "V""#),
        ("echo a${item.x}b", r#"echo a"V"b"#),
        (r#"echo "a ${item.x}""#, r#"echo "a V""#),
        ("echo 'a ${item.x} b'", r#"echo 'a '"V"' b'"#),
        (r#"echo \"${item.x}\""#, r#"echo \""V"\""#),
        (r#"echo "\"${item.x}\"""#, r#"echo "\"V\"""#),
        (r"echo \'${item.x}\'", r#"echo \'"V"\'"#),
        (r#"echo "it's ${item.x}""#, r#"echo "it's V""#),
        ("echo \\\n${item.x}", "echo \\\n\"V\""),
        ("x=${item.x} y=a", r#"x="V" y=a"#),
        ("cat < ${item.x} >>${item.x}", r#"cat < "V" >>"V""#),
        (r#"echo $"a ${item.x}""#, r#"echo $"a V""#),
    ]);
}

#[test]
fn an_escaped_dollar_begins_no_reference() {
    table(&[
        (r"echo \${item.x}", r"echo \${item.x}"),
        (r#"echo "\${item.x}""#, r#"echo "\${item.x}""#),
        (r"echo \\${item.x}", r#"echo \\"V""#),
        (r"echo '\${item.x}'", r#"echo '\'"V"''"#),
        ("cat <<E\n\\${item.x}\nE", "cat <<E\n\\${item.x}\nE"),
    ]);
}

#[test]
fn dollar_quotes_open_again_after_a_variable() {
    table(&[
        ("echo $'a${item.x}b'", r#"echo $'a'"V"'b'"#),
        (r"echo $'\t${item.x}\n'", r#"echo $'\t'"V"$'\n'"#),
        (r"echo $'${item.x}a${item.x}\n${item.x}'", r#"echo $''"V"'a'"V"$'\n'"V"''"#),
        (r"echo $'it\'s ${item.x}'", r#"echo $'it\'s '"V"''"#),
        (r"echo $'\${item.x}'", r"echo $'\${item.x}'"),
        (r#"echo "$'${item.x}'""#, r#"echo "$'V'""#),
    ]);
}

#[test]
fn quoting_starts_afresh_in_a_command_substitution() {
    table(&[
        ("echo $(cat ${item.x})", r#"echo $(cat "V")"#),
        (r#"echo "$(cat ${item.x})""#, r#"echo "$(cat "V")""#),
        (r#"echo "a $(cat "${item.x}" '${item.x}') ${item.x}""#, r#"echo "a $(cat "V" ''"V"'') V""#),
        ("echo `cat ${item.x}`", r#"echo `cat "V"`"#),
        (r#"echo "`cat ${item.x}` ${item.x}""#, r#"echo "`cat "V"` V""#),
        (r#"echo "`cat \"${item.x}\"`""#, r#"echo "`cat \"V\"`""#),
        (r"echo `cat \`ls ${item.x}\` ${item.x}` ${item.x}", r#"echo `cat \`ls "V"\` "V"` "V""#),
        (r#"echo `echo \\"${item.x}` "${item.x}""#, r#"echo `echo \\""V"` "V""#),
        ("diff <(sort ${item.x}) >(cat)", r#"diff <(sort "V") >(cat)"#),
    ]);
}

#[test]
fn parentheses_of_case_close_nothing() {
    table(&[
        (
            r#"echo "$(case a in a) echo ${item.x};; esac) ${item.x}""#,
            r#"echo "$(case a in a) echo "V";; esac) V""#,
        ),
        (
            r#"echo "$(case a in (a|b) echo x ;; *) (echo y) ;; esac; echo ${item.x}) ${item.x}""#,
            r#"echo "$(case a in (a|b) echo x ;; *) (echo y) ;; esac; echo "V") V""#,
        ),
        (
            "echo \"$(case a\nin # )\na) if :; then :; fi esac) ${item.x}\"",
            "echo \"$(case a\nin # )\na) if :; then :; fi esac) V\"",
        ),
        (r#"echo "$(echo case in a) ${item.x}""#, r#"echo "$(echo case in a) V""#),
        (
            r#"echo "$(for f do case $f in x) ;; esac; done) ${item.x}""#,
            r#"echo "$(for f do case $f in x) ;; esac; done) V""#,
        ),
        ("case ${item.x} in ${item.x}) echo ${item.x} ;; esac", r#"case "V" in "V") echo "V" ;; esac"#),
        (
            r#"echo "$(a=(case x) f() { :; }; echo @(case|in)) ${item.x}""#,
            r#"echo "$(a=(case x) f() { :; }; echo @(case|in)) V""#,
        ),
    ]);
}

#[test]
fn comments_are_left_alone() {
    table(&[
        ("# ${item.y} it's\necho ${item.x}", "# ${item.y} it's\necho \"V\""),
        ("echo a # \"${item.x}\necho ${item.x}", "echo a # \"${item.x}\necho \"V\""),
        ("echo a#'${item.x}'", r#"echo a#''"V"''"#),
        ("echo $# ${#x} ${item.x}", r#"echo $# ${#x} "V""#),
        ("(#' )\necho ${item.x})", "(#' )\necho \"V\")"),
        ("echo `: # it's` ${item.x}", r#"echo `: # it's` "V""#),
        ("# a \\\necho ${item.x}", "# a \\\necho \"V\""),
        ("# ${raw:item.x}", "# ${raw:item.x}"),
    ]);
}

#[test]
fn a_variable_is_written_in_parameter_expansions() {
    table(&[
        ("echo ${a:-${item.x}}", r#"echo ${a:-"V"}"#),
        (r#"echo "${a:-${item.x}}""#, r#"echo "${a:-V}""#),
        (r#"echo "${a:-"${item.x}"}""#, r#"echo "${a:-"V"}""#),
        (r#"echo "${a:-'${item.x}'}""#, r#"echo "${a:-'V'}""#),
        ("echo ${a:-'${item.x}'}", r#"echo ${a:-''"V"''}"#),
        (r#"echo "${a:-$(ls ${item.x})} ${item.x}""#, r#"echo "${a:-$(ls "V")} V""#),
        // A pattern is outside of the quotes around it.
        (r#"echo "${a%${item.x}}""#, r#"echo "${a%"V"}""#),
        (r#"echo "${a##'${item.x}'}""#, r#"echo "${a##''"V"''}""#),
        (r#"echo "${a/${item.x}/b}""#, r#"echo "${a/"V"/b}""#),
        (r#": "${a:=${item.x}}""#, r#": "${a:=V}""#),
        ("cat <<E\n${a:-${item.x}}\nE", "cat <<E\n${a:-V}\nE"),
        (r#"echo ${a:-\}}${item.x} "${a:-\}}${item.x}""#, r#"echo ${a:-\}}"V" "${a:-\}}V""#),
        (r#"echo ${a:-'}'}${item.x} "${a%'}'}${item.x}""#, r#"echo ${a:-'}'}"V" "${a%'}'}V""#),
    ]);
}

#[test]
fn a_variable_is_written_in_here_documents() {
    table(&[
        ("cat <<E\n\"${item.x}' $y\nE\necho ${item.x}", "cat <<E\n\"V' $y\nE\necho \"V\""),
        ("cat <<E >${item.x}; ls\n${item.x}\nE", "cat <<E >\"V\"; ls\nV\nE"),
        ("cat <<A - <<B\n${item.x}\nA\n${item.x}\nB\n${item.x}", "cat <<A - <<B\nV\nA\nV\nB\n\"V\""),
        ("cat <<-E\n\t${item.x}\n\tE\n${item.x}", "cat <<-E\n\tV\n\tE\n\"V\""),
        ("(cat <<E)\n'${item.x}'\nE\n${item.x}", "(cat <<E)\n'V'\nE\n\"V\""),
        ("cat <<E | (\n${item.x}\nE\ncat ${item.x})", "cat <<E | (\nV\nE\ncat \"V\")"),
        ("x=\"$(cat <<E\n${item.x}\nE\n) ${item.x}\"", "x=\"$(cat <<E\nV\nE\n) V\""),
        ("cat <<E\n$(cat <<F\n${item.x}\nF\n)\n${item.x}\nE", "cat <<E\n$(cat <<F\nV\nF\n)\nV\nE"),
        ("cat <<E\n$(ls ${item.x}) `ls '${item.x}'`\nE", "cat <<E\n$(ls \"V\") `ls ''\"V\"''`\nE"),
        ("cat <<E\na\\\nE\n${item.x}\nE\n${item.x}", "cat <<E\na\\\nE\nV\nE\n\"V\""),
        ("cat <<< ${item.x}", "cat <<< \"V\""),
        ("x=$((1<<2))\necho ${item.x}", "x=$((1<<2))\necho \"V\""),
    ]);
}

#[test]
fn a_quoted_here_document_loses_its_quotes_and_nothing_else() {
    table(&[
        ("cat <<'E'\n$y `z` \\ ${item.x}\nE\n${item.x}", "cat <<E\n\\$y \\`z\\` \\\\ V\nE\n\"V\""),
        ("cat <<\"E\"\n${item.x}\nE", "cat <<E\nV\nE"),
        ("cat <<\\E\n${item.x}\nE", "cat <<E\nV\nE"),
        ("cat <<E'O'\"F\"\n${item.x}\nEOF", "cat <<EOF\nV\nEOF"),
        ("cat <<- 'E'\n\t\\${item.x}\\\n\tE\n", "cat <<- E\n\t\\\\V\\\\\n\tE\n"),
        (
            "cat <<'A' <<'B'\n$\nA\n$${y} ${item.x}$\nB\n${item.x}",
            "cat <<'A' <<B\n$\nA\n\\${y} V\\$\nB\n\"V\"",
        ),
        // Without a reference it stays as it is.
        ("cat <<'E'\n$y `z` \\ ${y} $${y}\nE\n", "cat <<'E'\n$y `z` \\ ${y} ${y}\nE\n"),
        ("cat <<'a b'\n'\na b\necho ${item.x}", "cat <<'a b'\n'\na b\necho \"V\""),
    ]);
}

#[test]
fn a_literal_brace_is_written_by_the_quotes_around_it() {
    table(&[
        ("echo $${item.x}", "echo '${'item.x}"),
        (r#"echo "$${a}" '$${a}' $'$${a}'"#, r#"echo "\${a}" '${a}' $'${a}'"#),
        ("cat <<E\n$${a}\nE", "cat <<E\n\\${a}\nE"),
        (r#"echo ${a:-$${b} "${a:-$${b}""#, r#"echo ${a:-'${'b} "${a:-\${b}""#),
        (r#"echo "${a%$${b}""#, r#"echo "${a%'${'b}""#),
        ("echo `echo $${a} '$${a}'`", "echo `echo '${'a} '${a}'`"),
        ("echo $$ $$${item.x} $$", r#"echo $$ $$"V" $$"#),
    ]);
}

#[test]
fn raw_text_is_inserted_as_it_is() {
    let text = |template: &str| {
        let script = script(template, "a'b $(c)");
        (script.text, script.env.len())
    };
    assert_eq!(text("x ${raw:item.x} \"${raw:item.x}\""), ("x a'b $(c) \"a'b $(c)\"".into(), 0));
    assert_eq!(text("echo $((${raw:item.x}))"), ("echo $((a'b $(c)))".into(), 0));
    assert_eq!(text("cat <<'E'\n${raw:item.x}\nE"), ("cat <<'E'\na'b $(c)\nE".into(), 0));
    // A here-document that had to lose its quotes gives the text out as if it had kept them.
    assert_eq!(
        text("cat <<'E'\n${raw:item.x} ${item.x}\nE"),
        ("cat <<E\na'b \\$(c) ${__undaunted_1}\nE".into(), 1)
    );
}

#[test]
fn one_variable_for_each_distinct_reference() {
    let text = "${item.x} ${item.x:-d} \"${item.x}\" ${version} ${item.none:-d}";
    let script = script(text, "");
    assert_eq!(
        script.text,
        "\"${__undaunted_1}\" \"${__undaunted_2}\" \"${__undaunted_1}\" \"${__undaunted_3}\" \
         \"${__undaunted_4}\""
    );
    let pairs = ["", "d", "version", "d"].into_iter().zip(1..);
    let expected: Vec<_> = pairs.map(|(value, n)| (format!("__undaunted_{n}"), value.to_owned())).collect();
    assert_eq!(script.env, expected);
    let template = parse("${item.b} # ${item.c}\n${raw:item.a} ${item.b}").unwrap();
    let texts: Vec<_> = template.references().map(Reference::text).collect();
    assert_eq!(texts, ["item.b", "item.a"]);
}

#[test]
fn a_value_that_cannot_be_passed_on_is_refused() {
    let template = parse("echo ${item.x}").unwrap();
    let render = |x: Value| template.render(&TestItem(json!({ "x": x })));
    let name = || "item.x".to_owned();
    assert_eq!(render(Value::Null), Err(ValueError::Missing { name: name() }));
    assert_eq!(render(json!("\0")), Err(ValueError::HoldsNul { name: name() }));
    let size = 102_401;
    let large = render(json!("x".repeat(size)));
    assert_eq!(large, Err(ValueError::TooLarge { name: name(), size }));
    assert_eq!(render(json!([1, "a"])).unwrap().env[0].1, "[1,\"a\"]");
}

#[test]
fn a_field_in_quotes_is_found_whatever_the_quotes_around() {
    let written = |text: &str| {
        let item = json!({"a b": "value", "x": {"a b": ["value"]}});
        let script = parse(text).unwrap().render(&TestItem(item)).unwrap();
        assert_eq!(script.env[0].1, "value", "{text}");
        script.text.replace("${__undaunted_1}", "V")
    };
    for (text, expected) in [
        ("echo ${item['a b']} x", r#"echo "V" x"#),
        (r#"echo ${item["a b"]} x"#, r#"echo "V" x"#),
        ("echo '${item['a b']} x'", r#"echo ''"V"' x'"#),
        (r#"echo '${item["a b"]} x'"#, r#"echo ''"V"' x'"#),
        (r#"echo "${item['a b']} x""#, r#"echo "V x""#),
        (r#"echo "${item["a b"]} x""#, r#"echo "V x""#),
        ("echo $'${item['a b']}'", r#"echo $''"V"''"#),
        ("cat <<E\n${item['a b']}\nE", "cat <<E\nV\nE"),
        ("cat <<'E'\n${item['a b']}\nE", "cat <<E\nV\nE"),
        ("echo `echo ${item['a b']}`", r#"echo `echo "V"`"#),
        ("echo ${item.x['a b'][0]:-d}", r#"echo "V""#),
        ("echo ${a[k]} ${item['a b']}", r#"echo ${a[k]} "V""#),
        ("echo ${a['a.b']} ${item['a b']}", r#"echo ${a['a.b']} "V""#),
    ] {
        assert_eq!(written(text), expected, "{text}");
    }
}
