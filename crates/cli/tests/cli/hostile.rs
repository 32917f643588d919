//! Names, values and errors that would change what a terminal shows are escaped in every text for people.

use crate::home::CliHome;

/// Turns the direction of the line, colours it, clears the screen, and moves to the next line.
const SIGNS: [char; 6] = ['\u{202e}', '\u{2066}', '\u{1b}', '\u{9b}', '\u{61c}', '\u{2028}'];

/// As YAML writes them.
const HOSTILE: &str = "x\\u202e\\u2066\\e31m\\u009b\\u061c\\u2028y";

fn workflow() -> String {
    let map = "
name: \"NAME\"
mode: mapreduce
error_policy: {max_failures: 9}
retry_budget: 5
env: {GREETING: \"NAME\"}
setup:
  - {id: \"setID\", shell: \"true\"}
map:
  input: items.json
  best_effort: true
  best_effort_min_dcs: 3
  agent_template:
    commands:
      - id: \"tryID\"
        shell: 'cat items.json >&2; test ${item.id} = fine'
        breaker: {name: \"breakerID\", failure_threshold: 1, recovery_timeout: 1ms, half_open_max_calls: 1}
        retry_config: {attempts: 1, initial_delay: 1ms, rules: [{stderr: \"NAME\", then: retry}]}
reduce:
  - {id: \"sumID\", shell: \"true\"}
";
    // An id cannot contain control characters and spaces.
    let id = ["\\e", "\\u009b", "\\u2028"].iter().fold(HOSTILE.to_owned(), |id, sign| id.replace(sign, ""));
    map.replace("NAME", HOSTILE).replace("ID", &id)
}

/// The lines with one of the signs.
fn harmful(text: &str) -> Vec<&str> {
    text.split('\n').filter(|line| line.contains(SIGNS)).collect()
}

#[test]
fn no_text_for_people_contains_control_or_direction_characters_of_others() {
    let home = CliHome::new();
    let raw: String = SIGNS.iter().collect();
    let items =
        serde_json::json!([{"id": "bad\u{202e}\u{61c}1"}, {"id": format!("bad{raw}2")}, {"id": "fine"}]);
    home.write("items.json", &items.to_string());
    home.write("w.yaml", &workflow());
    let file = format!("w{raw}.yaml");
    home.write(&file, &workflow().replace("shell:", "shel:"));
    let mut printed = vec![];
    let mut run = |arguments: &[&str]| {
        let done = home.run(arguments);
        printed.push((arguments.join(" "), format!("{}{}", done.out, done.err)));
        done.code
    };
    assert_eq!(run(&["run", "w.yaml", "-vv"]), 4, "it ends with dead letters");
    let commands = [
        "ls",
        "show @last",
        "show @last --resumes",
        "events @last",
        "explain @last",
        "explain @last/#0",
        "explain @last/#2",
        "attempts @last",
        "attempts @last/#0",
        "dlq ls @last",
        "dlq show @last",
        "dlq group @last",
        "dlq redrive @last --dry-run",
        "breaker ls",
        "budget show @last",
        "store check",
        "check w.yaml",
        "explain-config w.yaml",
        "dlq redrive @last",
        "dlq drop @last --all --yes",
    ];
    for command in commands {
        let code = run(&command.split(' ').collect::<Vec<_>>());
        assert!(code == 0 || code == 4, "{command}: {code}");
    }
    let breaker = "breakerx\u{202e}\u{2066}31m\u{61c}y";
    for arguments in [
        &["breaker", "show", breaker][..],
        &["breaker", "show", &raw],
        &["show", &raw],
        &["show", &format!("@last/{raw}")],
        &["dlq", "ls", "@last", &raw],
        &["dlq", "ls", "@last", "--where", &raw],
        &["dlq", "ls", "@last", "--where", &format!("id == '{raw}'")],
        &["dlq", "ls", "@last", "--group", &raw],
        &["check", &file],
        &["run", &file],
        &["check", &raw],
        &["run", "w.yaml", &raw],
        &["ls", "--store", &raw],
        &["map", "-a", &raw, "--", "true"],
        &["schedule", "--retry-config", &format!("{{attempts: '{raw}'}}")],
        &["restore", &raw],
        &["state", "import", &raw, "--workflow", &file],
        &["map", "-q", "-a", "items.json", "--attempts", "0", "--", "false"],
        &["ls"],
        &["attempts", "@last"],
    ] {
        run(arguments);
    }
    let found: Vec<String> = printed
        .iter()
        .flat_map(|(what, text)| harmful(text).into_iter().map(move |line| format!("{what:?}: {line:?}\n")))
        .collect();
    assert!(found.is_empty(), "{}", found.concat());
}
