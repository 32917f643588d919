//! Text that is no reference stays byte for byte the same, however long it is.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

const SHORT_PIECES: [&str; 70] = [
    "'", "\"", "`", "$(", ")", "(", "((", "))", "$((", "${", "}", "{", "$'", "$\"", "$[", "]", "[", "[[",
    "]]", "\\", "\\\n", "\n", " ", "\t", ";", ";;", "&", "|", "#", " #", "<<E\n", "\nE\n", "<<'E'\n",
    "<<\\E", "<<", "<<<", "<(", ">", "2>&1", "case ", " in ", "esac", "for ", "do ", "done", "let ", "a",
    "b=", "c[", "=(", "${x:-", "${x%", "${x/", "${x:=", "${x:1", "${x[", "${#", "${!x", "$x", "$1", "$#",
    "$", "!", "@(", "\\`", "\\\"", "\\\\", "é", "\r", "-eq",
];

const LONG_PIECES: [&str; 4] = ["<<-\"E\"", "function ", "${raw:-x}", "${VERSION-1.0}"];

fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select([&SHORT_PIECES[..], &LONG_PIECES].concat())
}

fn untouched(text: &str) {
    let template = parse(text).unwrap_or_else(|errors| panic!("{text}\n{errors:#?}"));
    assert_eq!(template.references().count(), 0);
    let script = template.render(&TestItem(json!(null))).unwrap();
    assert_eq!(script.text, text);
    assert_eq!(script.env, []);
}

#[test]
fn parameters_of_the_shell_stay_as_they_are() {
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
        pieces in prop::collection::vec(piece(), 0..40)
    ) {
        let text = pieces.concat();
        if !text.contains("$${") {
            untouched(&text);
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(
        pieces in prop::collection::vec(
            prop_oneof![
                6 => piece().prop_map(str::to_owned),
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
        pieces in prop::collection::vec(piece(), 0..20),
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
            let rendered = template.render(&TestItem(json!({"x": "value"}))).unwrap().text;
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
        let short = [
            "`", "\\`", "((", "$((", "(", "${a:-", "\"$(", "$[", "$'", "\\", "\\\n", "<<a\n", "<<'E'\n",
            "[[ a ", "a=(", "a[", "${item[", "$${", "$", "#", "\t", "let ", "${a-b", "${a[0]", "[ -v `",
        ];
        let longer = [
            "\"${a:-\"",
            "cat <<E\n$(",
            "case a in ",
            "case a in a) ",
            "${item.x}",
            "${item.x:-{",
            "${item.x:-",
            "`\\`\\\\\\`",
            "<<-E\n\t\t\t\t\t\t\tE ",
            "${nothing.x} ",
            "${item['",
            "${a['\\'",
            "${a[\"a.b\"]",
            "eval ${item.x} ",
            "eval \"${item.x} $(",
            "sh -c '${item.x}",
        ];
        let long = |pattern: &str, bytes: usize| pattern.repeat(bytes / pattern.len());
        for pattern in ["$(", "${", "\"", "'"] {
            let _ = parse(&long(pattern, 1 << 20));
            sender.send(()).unwrap();
        }
        let lines = long("\n", 1 << 17);
        let _ = parse(&format!("cat <<'{lines}'\n{lines}"));
        for pattern in short.into_iter().chain(longer) {
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
