//! What is not ours is left byte for byte, whatever it is, and however long.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

const PIECES: [&str; 74] = [
    "'",
    "\"",
    "`",
    "$(",
    ")",
    "(",
    "((",
    "))",
    "$((",
    "${",
    "}",
    "{",
    "$'",
    "$\"",
    "$[",
    "]",
    "[",
    "[[",
    "]]",
    "\\",
    "\\\n",
    "\n",
    " ",
    "\t",
    ";",
    ";;",
    "&",
    "|",
    "#",
    " #",
    "<<E\n",
    "\nE\n",
    "<<'E'\n",
    "<<-\"E\"",
    "<<\\E",
    "<<",
    "<<<",
    "<(",
    ">",
    "2>&1",
    "case ",
    " in ",
    "esac",
    "for ",
    "do ",
    "done",
    "let ",
    "function ",
    "a",
    "b=",
    "c[",
    "=(",
    "${x:-",
    "${x%",
    "${x/",
    "${x:=",
    "${x:1",
    "${x[",
    "${#",
    "${!x",
    "$x",
    "$1",
    "$#",
    "$",
    "!",
    "@(",
    "\\`",
    "\\\"",
    "\\\\",
    "é",
    "\r",
    "-eq",
    "${raw:-x}",
    "${VERSION-1.0}",
];

fn untouched(text: &str) {
    let template = parse(text).unwrap_or_else(|errors| panic!("{text}\n{errors:#?}"));
    assert_eq!(template.references().count(), 0);
    let script = template.render(&Item(json!(null))).unwrap();
    assert_eq!(script.text, text);
    assert_eq!(script.env, []);
}

#[test]
fn what_belongs_to_the_shell() {
    for text in [
        "",
        "echo ${NAME} ${f%.txt} ${arr[0]} ${arr[$i]} ${#x} $NAME $1 $# $$ $? $! ${x:-a.b}",
        "echo ${items} ${item_} ${map} ${step} ${env} ${workflow} ${raw} ${raw:-x} ${raw:0:3}",
        "echo ${item-x} ${last-word}",
        "awk '{print $1, ${NF}}' <<'EOF'\n$x `y` ${z}\nEOF\n",
        "if [ \"$(case $x in a) echo b;; esac)\" = b ]; then :; fi # it's",
    ] {
        if text.contains("${item-x}") {
            // `item` is ours, and this asks the shell for it.
            assert!(parse(text).is_err());
        } else {
            untouched(text);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_shell_text_without_references_is_left_as_it_is(
        pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..40)
    ) {
        let text = pieces.concat();
        if !text.contains("$${") {
            untouched(&text);
        }
    }

    #[test]
    fn no_text_makes_it_fail(
        pieces in prop::collection::vec(
            prop_oneof![
                6 => prop::sample::select(&PIECES[..]).prop_map(str::to_owned),
                3 => prop::sample::select(
                    &["${item.x}", "$${", "${raw:item.x}", "${item.x:-d}", "${item", "item.x}"][..]
                ).prop_map(str::to_owned),
                1 => any::<String>(),
            ],
            0..30
        )
    ) {
        let _ = parse(&pieces.concat());
    }

    #[test]
    fn only_references_are_replaced(
        pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..20),
        at in any::<prop::sample::Index>(),
    ) {
        let mut pieces = pieces;
        pieces.insert(at.index(pieces.len() + 1), "${item.x}");
        let text = pieces.concat();
        // A literal brace and a quoted here-document change too, and in backquotes a backslash
        // or a joined line before a reference goes with it.
        let others = ["$${", "<<'", "<<-\"", "<<\\", "\\${item", "\\\n${item"];
        if others.iter().any(|other| text.contains(other)) {
            return Ok(());
        }
        if let Ok(template) = parse(&text) {
            let rendered = template.render(&Item(json!({"x": "value"}))).unwrap().text;
            let possible = ["\"V\"", "V", "'\"V\"'", "'\"V\"$'"]
                .map(|written| text.replace("${item.x}", &written.replace('V', "${__undaunted_1}")));
            prop_assert!(possible.contains(&rendered) || rendered == text, "{}", rendered);
        }
    }
}

#[test]
fn a_long_text_is_read_at_once_however_it_nests() {
    let (sender, receiver) = mpsc::channel();
    let reader = thread::spawn(move || {
        let patterns = [
            "`",
            "\\`",
            "((",
            "$((",
            "(",
            "${a:-",
            "\"$(",
            "\"${a:-\"",
            "$[",
            "$'",
            "\\",
            "\\\n",
            "<<a\n",
            "cat <<E\n$(",
            "<<'E'\n",
            "case a in ",
            "case a in a) ",
            "[[ a ",
            "a=(",
            "a[",
            "${item.x}",
            "${item.x:-{",
            "${item.x:-",
            "${item[",
            "$${",
            "$",
            "#",
            "\t",
            "let ",
            "${a-b",
            "`\\`\\\\\\`",
            "${a[0]",
            "<<-E\n\t\t\t\t\t\t\tE ",
            "${nothing.x} ",
            "${item['",
            "${a['\\'",
            "${a[\"a.b\"]",
            "eval ${item.x} ",
            "eval \"${item.x} $(",
            "sh -c '${item.x}",
            "[ -v `",
        ];
        let long = |pattern: &str, bytes: usize| pattern.repeat(bytes / pattern.len());
        for pattern in ["$(", "${", "\"", "'"] {
            let _ = parse(&long(pattern, 1 << 20));
            sender.send(()).unwrap();
        }
        let lines = long("\n", 1 << 17);
        let _ = parse(&format!("cat <<'{lines}'\n{lines}"));
        for pattern in patterns {
            let text = long(pattern, 1 << 17);
            let _ = parse(&text);
            let _ = parse(&format!("cat <<E\n{text}"));
            sender.send(()).unwrap();
        }
    });
    // Quadratic time would be minutes for each; the limit is for one on a busy machine.
    let patient = Duration::from_mins(1);
    let ended = loop {
        if let Err(ended) = receiver.recv_timeout(patient) {
            break ended;
        }
    };
    assert_eq!(ended, mpsc::RecvTimeoutError::Disconnected);
    reader.join().unwrap();
}
