//! How real shells run the scripts: `/bin/sh`, and bash where it exists.
//!
//! Every script prints how many words it got and the words; every value is hostile; and the folder
//! it runs in must be empty afterwards.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::*;

/// Prints how many words it was given, and each of them.
const ONE: &str = "one() { printf '%s:' \"$#\"; printf '%s\\0' \"$@\"; }\n";

/// Scripts that print one word, and what stands before and after the value in it.
const CONTEXTS: [(&str, &str, &str); 50] = [
    ("one ${item.x}", "", ""),
    ("one a${item.x}b", "a", "b"),
    ("one \"${item.x}\"", "", ""),
    ("one \"a ${item.x} b\"", "a ", " b"),
    ("one '${item.x}'", "", ""),
    ("one 'a ${item.x} b'", "a ", " b"),
    ("one \\\n${item.x}", "", ""),
    ("one \\'${item.x}\\\"", "'", "\""),
    ("one 'a'${item.x}\"b\"", "a", "b"),
    ("x=${item.x}; one \"$x\"", "", ""),
    ("x=${item.x} y=; one \"$x\"", "", ""),
    ("for x in ${item.x}; do one \"$x\"; done", "", ""),
    ("f() { one ${item.x}; }; f", "", ""),
    ("if :; then one ${item.x}; fi # it's", "", ""),
    ("set -- ${item.x}; one \"$@\"", "", ""),
    ("one ${none:-${item.x}}", "", ""),
    ("one ${none:-'${item.x}'}", "", ""),
    ("one ${none-\"a ${item.x}\"}", "a ", ""),
    ("one \"${none:-${item.x}}\"", "", ""),
    ("one \"${none:-a \"${item.x}\"}\"", "a ", ""),
    ("one \"${none:-'${item.x}'}\"", "'", "'"),
    ("one \"${HOME:+${item.x}}\"", "", ""),
    ("f=ZZ${item.x}; one \"${f%${item.x}}\"", "ZZ", "\u{0}"),
    ("f=${item.x}ZZ; one \"${f#'${item.x}'}\"", "ZZ", "\u{0}"),
    (": \"${f9:=${item.x}}\"; one \"$f9\"", "", ""),
    ("case ${item.x} in ${item.x}) one ok;; *) one bad;; esac", "ok", "\u{0}"),
    ("case ${item.x}. in '${item.x}'.) one ok;; *) one bad;; esac", "ok", "\u{0}"),
    ("one \"$(printf %s. ${item.x})\"", "", "."),
    ("one \"$(printf %s. \"${item.x}\")\"", "", "."),
    ("one \"$(printf %s. '${item.x}' # it's )\n)\"", "", "."),
    ("one \"$(case a in a) printf %s. ${item.x};; esac)\"", "", "."),
    ("one \"$( (case a in (a) printf %s. ${item.x};; esac) )\"", "", "."),
    ("one \"`printf %s. ${item.x}`\"", "", "."),
    ("one \"`printf %s. \\\"${item.x}\\\"`\"", "", "."),
    ("one \"`printf %s. '${item.x}'`\"", "", "."),
    ("one \"`printf %s. \\\"\\`printf %s, ${item.x}\\`\\\"`\"", "", ",."),
    ("one \"$(printf %s. \"$(printf %s, \"${none:-${item.x}}\")\")\"", "", ",."),
    ("x=$(cat <<EOF\n${item.x}.\nEOF\n); one \"$x\"", "", "."),
    ("x=$(cat <<EOF\n\"${item.x}'.\nEOF\n); one \"$x\"", "\"", "'."),
    ("x=$(cat <<'EOF'\n$y `z` \\ ${item.x}.\nEOF\n); one \"$x\"", "$y `z` \\ ", "."),
    ("x=$(cat <<\"EOF\"\n\\${item.x}\\\n.\nEOF\n); one \"$x\"", "\\", "\\\n."),
    ("x=$(cat <<\\EOF\n${item.x}.\nEOF\n); one \"$x\"", "", "."),
    ("x=$(cat <<-'EOF'\n\t${item.x}.\n\tEOF\n); one \"$x\"", "", "."),
    ("x=$(cat <<-EOF\n\t${item.x}.\n\tEOF\n); one \"$x\"", "", "."),
    ("x=$(: <<A; cat <<B\n${item.x}\nA\n${item.x}.\nB\n); one \"$x\"", "", "."),
    ("x=$(cat <<EOF\n${none:-${item.x}}.\nEOF\n); one \"$x\"", "", "."),
    ("x=$(cat <<EOF\n$(printf %s. ${item.x})\nEOF\n); one \"$x\"", "", "."),
    ("x=$(cat <<EOF\n`printf %s. '${item.x}'`\nEOF\n); one \"$x\"", "", "."),
    ("x=$(cat <<A\n$(cat <<'B'\n${item.x}.\nB\n)\nA\n); one \"$x\"", "", "."),
    ("one $${a,b}\"$${a}\"'$${a}'${item.x}", "${a,b}${a}${a}", ""),
];

/// Values that careless quoting would run, split, expand or lose.
const HOSTILE: [&str; 33] = [
    "",
    " ",
    "plain",
    "a  b\tc",
    "\n",
    "a\n\nb\n\n",
    "\"",
    "'",
    "'\"'\"'",
    "'; touch hacked; '",
    "\"; touch hacked; \"",
    "$(touch hacked)",
    "`touch hacked`",
    "${none:-$(touch hacked)}",
    ";touch hacked",
    "\ntouch hacked\n",
    "| touch hacked &",
    "> hacked",
    "a[$(touch hacked)]",
    "*",
    "[a-z]*?",
    "~",
    "-n",
    "--help",
    "\\",
    "\\n\\\\",
    "a\\",
    "${item.x}",
    "$HOME $1 $$ $#",
    "EOF\nA\nB\n'EOF'\n\tEOF\ntouch hacked",
    "}) ;; esac fi done )}\"'`",
    "{a,b} !x #y &z %s %n",
    "Åé Á 日本 \u{1} \u{7f} \u{80} \u{1f600}",
];

/// An empty folder, gone when it is dropped.
struct EmptyFolder(PathBuf);

impl EmptyFolder {
    fn new(name: &str) -> Self {
        let name = format!("undaunted-template-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    #[track_caller]
    fn must_be_empty(&self, why: &str) {
        let found: Vec<_> = fs::read_dir(&self.0).unwrap().collect();
        assert!(found.is_empty(), "{found:?} was made by {why}");
    }
}

impl Drop for EmptyFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn shells() -> impl Iterator<Item = &'static str> {
    ["/bin/sh", "/bin/bash"].into_iter().filter(|shell| Path::new(shell).exists())
}

/// The standard output and standard error of the shell.
fn run(shell: &str, script: &Script, folder: &EmptyFolder) -> (String, String) {
    let output = Command::new(shell)
        .args(["-c", &script.text])
        .env_clear()
        .envs([("PATH", "/usr/bin:/bin"), ("HOME", "/")])
        .envs(script.env.iter().cloned())
        .current_dir(&folder.0)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The word a context prints. A `suffix` of NUL says that the value is not in it.
fn word(prefix: &str, value: &str, suffix: &str) -> String {
    match suffix {
        "\u{0}" => format!("1:{prefix}\0"),
        _ => format!("1:{prefix}{value}{suffix}\0"),
    }
}

/// All contexts in one script, and what it prints.
fn everything(value: &str) -> (Script, String) {
    let fit = |(_, _, suffix): &&(_, _, &str)| {
        // Shells match patterns in quadratic time.
        *suffix != "\u{0}" || value.len() < 1000
    };
    let contexts: Vec<_> = CONTEXTS.iter().filter(fit).collect();
    let texts: Vec<&str> = contexts.iter().map(|(text, _, _)| *text).collect();
    let words = contexts.iter().map(|(_, prefix, suffix)| word(prefix, value, suffix));
    let text = format!("{ONE}{}\n", texts.join("\n"));
    (script(&text, value), words.collect())
}

#[test]
fn a_value_is_one_word_in_every_context() {
    let folder = EmptyFolder::new("contexts");
    for (text, prefix, suffix) in CONTEXTS {
        for value in ["'\"$(touch hacked)`touch hacked`\\ *\nEOF\n;touch hacked #", "", "-n"] {
            let script = script(&format!("{ONE}{text}\n"), value);
            for shell in shells() {
                let expected = (word(prefix, value, suffix), String::new());
                assert_eq!(run(shell, &script, &folder), expected, "{shell}: {}", script.text);
            }
        }
        folder.must_be_empty(text);
    }
}

#[test]
fn no_value_is_more_than_data_in_all_contexts_together() {
    let folder = EmptyFolder::new("hostile");
    let long = "long \" ' ".repeat(11_000);
    for value in HOSTILE.into_iter().chain([long.as_str()]) {
        let (script, expected) = everything(value);
        for shell in shells() {
            let (printed, complaint) = run(shell, &script, &folder);
            assert_eq!(printed, expected, "{shell}: {value:?}: {complaint}");
        }
        folder.must_be_empty(value);
    }
}

#[test]
fn references_in_dollar_quotes_are_data() {
    let folder = EmptyFolder::new("dollar");
    let value = "'\"\\n$(touch hacked)";
    let text = |text: &str| script(&format!("{ONE}{text}"), value);
    for shell in shells() {
        // Where the shell does not know them, they are a dollar and single quotes.
        let (dollar, _) = run(shell, &script("printf %s $''", ""), &folder);
        let (printed, _) = run(shell, &text("one $'a${item.x}b'"), &folder);
        assert_eq!(printed, format!("1:{dollar}a{value}b\0"), "{shell}");
    }
    if let Some(bash) = shells().find(|shell| shell.ends_with("bash")) {
        let (printed, _) = run(bash, &text(r"one $'it\'s\t${item.x}\n'"), &folder);
        assert_eq!(printed, format!("1:it's\t{value}\n\0"));
        let (printed, _) = run(bash, &text("a=(x ${item.x}); one \"${a[1]}\""), &folder);
        assert_eq!(printed, format!("1:{value}\0"));
        let (printed, _) = run(bash, &text("[[ ${item.x} == ${item.x} ]] && cat <<< ${item.x}"), &folder);
        assert_eq!(printed, format!("{value}\n"));
        let (printed, _) = run(bash, &text("f=aXb; one \"${f/X/${item.x}}\""), &folder);
        assert_eq!(printed, format!("1:a{value}b\0"));
    }
    folder.must_be_empty("dollar quotes");
}

/// Commands that would evaluate some of their arguments, with values in the others.
const BESIDE_EVALUATED: [&str; 39] = [
    "read x <<EOF\n${item.x}\nEOF\n",
    "read -r x <<< ${item.x}",
    "read -p ${item.x} x",
    "read -d ${item.x} -t 1 x",
    "printf '%s' ${item.x}",
    "printf -v x '%s' ${item.x}",
    "printf -- ${item.x}",
    "printf \"$HOME\" ${item.x}",
    "printf 'a ${item.x}'",
    "test ${item.x} = a",
    "test ${item.x}",
    "[ -f ${item.x} ]",
    "[ ! -n ${item.x} ]",
    "[ ${item.x} = ${item.y} ]",
    "[ ${item.x} -eq 1 -o ${item.y} -eq 1 ]",
    "[ -n ${item.x} -a -z ${item.y} ]",
    "[ -v x -a ${item.x} = a ]",
    "[[ ${item.x} == ${item.y} ]]",
    "export NAME=${item.x}",
    "export A=1 \"NAME=${item.x}\"",
    "f() { local x=${item.x}; }; f",
    "f() { local -r x='${item.x}' y; }; f",
    "declare x=${item.x}; echo \"$x\"",
    "declare -x x+=${item.x}",
    "declare -a x=(${item.x}); echo \"${x[@]}\"",
    "declare -A x=([k]=${item.x}); echo \"${x[@]}\"",
    "x[0]=${item.x}; declare y[0]=${item.x}",
    "readonly x=${item.x}",
    "mapfile -t x < ${item.x}",
    "mapfile x <<< ${item.x}",
    "getopts ${item.x} x -a",
    "getopts ab x ${item.x}",
    "wait -- ${item.x}",
    "trap - ${item.x}",
    "trap : ${item.x}",
    "sh -c 'printf %s \"$1\"' _ ${item.x}",
    "bash -euo pipefail -c ': \"$@\"' ${item.x} ${item.y}",
    "sh ./none ${item.x}",
    "command -v ${item.x}",
];

#[test]
fn what_is_evaluated_is_never_the_value_beside_it() {
    let folder = EmptyFolder::new("evaluated");
    for text in BESIDE_EVALUATED {
        let template = parse(text).unwrap_or_else(|errors| panic!("{text}\n{errors:#?}"));
        for value in [
            "a[$(touch hacked)]",
            "-va[$(touch hacked)]",
            "-pa[$(touch hacked)]",
            "-v",
            "($(touch hacked))",
            "([$(touch hacked)]=1)",
            "$(touch hacked)",
            "a;touch hacked",
        ] {
            let item = json!({"x": value, "y": "a[$(touch hacked)]"});
            let script = template.render(&TestItem(item)).unwrap();
            for shell in shells() {
                run(shell, &script, &folder);
            }
            folder.must_be_empty(&format!("{text} with {value}"));
        }
    }
}

/// Chooses between shapes, by bytes that proptest generates and shrinks.
struct Choices<'b> {
    bytes: std::slice::Iter<'b, u8>,
    delimiters: usize,
}

impl Choices<'_> {
    fn pick(&mut self, count: usize) -> usize {
        usize::from(self.bytes.next().copied().unwrap_or(0)) % count
    }

    fn delimiter(&mut self) -> String {
        self.delimiters += 1;
        format!("E{}", self.delimiters)
    }

    fn noise(&mut self) -> &'static str {
        [
            " ",
            "\n",
            " # it's ) a \" comment ${item.x}\n",
            "\\\n ",
            ": 'x)' \")\" \\) $# a#b ${HOME%.txt} ${HOME:-)};",
            "case q in (q) ;; esac;",
            "n=$((1 << 2)); ",
        ][self.pick(7)]
    }

    /// A word outside of quotes.
    fn word(&mut self, depth: usize, ticks: bool) -> String {
        match self.pick(if depth == 0 { 3 } else { 6 }) {
            0 => "${item.x}".to_owned(),
            1 => "'${item.x}'".to_owned(),
            2 | 3 => format!("\"{}\"", self.quoted(depth, ticks, false)),
            4 => format!("${{none:-\"{}\"}}", self.quoted(depth - 1, ticks, false)),
            _ => format!("${{HOME:+{}}}", self.word(depth - 1, ticks)),
        }
    }

    /// The inside double quotes, or of a here-document.
    fn quoted(&mut self, depth: usize, ticks: bool, body: bool) -> String {
        match self.pick(if depth == 0 { 1 } else { 6 }) {
            0 => "${item.x}".to_owned(),
            1 => format!("${{none:-{}}}", self.quoted(depth - 1, ticks, body)),
            // No backquotes inside quotes inside quotes: shells disagree about them.
            2 if !body => format!("${{HOME:+\"{}\"}}", self.quoted(depth - 1, true, body)),
            3 if !body && !ticks => format!("`{}`", self.command(depth - 1, true)),
            _ => format!("$({}{}\n)", self.noise(), self.command(depth - 1, ticks)),
        }
    }

    /// A command that prints the value.
    fn command(&mut self, depth: usize, ticks: bool) -> String {
        let (noise, end) = (self.noise(), self.delimiter());
        let Some(less) = depth.checked_sub(1) else {
            return format!("printf %s {}", self.word(0, ticks));
        };
        match self.pick(14) {
            0 => format!("printf %s {}", self.word(less, ticks)),
            1 => format!("cat <<{end}\n{}\n{end}\n", self.quoted(less, ticks, true)),
            2 => format!("(cat <<-{end})\n\t{}\n\t{end}\n", self.quoted(less, ticks, true)),
            3 if !ticks => format!("cat <<'{end}'\n${{item.x}}\n{end}\n"),
            4 if !ticks => {
                let body = self.quoted(less, ticks, true);
                format!(": <<{end}; cat <<{end}x\n$(: \")\" ) it's `:`\n{end}\n{body}\n{end}x\n")
            }
            5 => format!("({noise}{})", self.command(less, ticks)),
            6 => format!("{{ {noise}{}\n}}", self.command(less, ticks)),
            7 => format!("if :; then {noise}{}\nfi", self.command(less, ticks)),
            8 => format!("case x in (y) ;; x|z){noise}{}\nesac", self.command(less, ticks)),
            9 => format!(
                "case \"{}\" in '${{item.x}}') {}\n;; *) echo no;; esac",
                self.quoted(less, ticks, false),
                self.command(less, ticks)
            ),
            10 => format!("for i in {}; do printf %s \"$i\"; done", self.word(less, ticks)),
            11 => format!("f{end}() {{ {}\n}}; f{end}", self.command(less, ticks)),
            12 => format!("x={}; {noise}printf %s \"$x\"", self.word(less, ticks)),
            _ => format!(": {} #'\n{}", self.word(less, ticks), self.command(less, ticks)),
        }
    }
}

fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => prop::sample::select(&HOSTILE[..]).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    prop::collection::vec(piece, 1..5).prop_map(|pieces| pieces.concat().replace('\0', ""))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_value_is_one_word_in_every_context(value in hostile()) {
        let folder = EmptyFolder::new("any");
        let (script, expected) = everything(&value);
        for shell in shells() {
            let (printed, complaint) = run(shell, &script, &folder);
            prop_assert_eq!(&printed, &expected, "{}: {}", shell, complaint);
        }
        folder.must_be_empty(&value);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn however_contexts_nest_the_value_comes_out(
        bytes in prop::collection::vec(any::<u8>(), 0..40),
        value in hostile(),
    ) {
        let folder = EmptyFolder::new("nested");
        let mut choices = Choices { bytes: bytes.iter(), delimiters: 0 };
        let text = format!("{}{}", choices.noise(), choices.command(6, false));
        // `$(…)` takes line breaks off the end.
        let value = value + ".";
        let script = script(&text, &value);
        for shell in shells() {
            let (printed, complaint) = run(shell, &script, &folder);
            // A here-document adds a line break.
            prop_assert_eq!(
                printed.trim_end_matches('\n'),
                value.as_str(),
                "{}: {}\n{}", shell, script.text, complaint
            );
        }
        folder.must_be_empty(&script.text);
    }
}
