//! `docs/json.md` is true: what each command prints has the fields of the page, and no others.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::binary::repository;
use crate::home::CliHome;
use crate::plain::{at, shape};

const WORKFLOW: &str = "
mode: mapreduce
retry_budget: 6
retry_budget_per_workflow: 3
map:
  input: {shell: \"printf 'north\\nsouth\\n'\"}
  max_parallel: 1
  agent_template:
    - id: ask
      shell: 'echo no answer >&2; test ${item} = south || exit 3'
      retry_config: {attempts: 1, initial_delay: 50ms, retry_budget: 1m}
";

/// The examples of the page, by their heading.
fn examples() -> BTreeMap<String, Vec<Value>> {
    let page = repository().join("docs/json.md");
    let page = std::fs::read_to_string(page).expect("a page");
    let mut examples: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for section in page.split("\n## ").skip(1) {
        let (heading, rest) = section.split_once('\n').expect("a heading");
        let blocks = rest.split("```json\n").skip(1);
        let blocks = blocks.filter_map(|block| block.split_once("\n```"));
        let values = blocks.map(|(block, _)| serde_json::from_str(block).expect(block));
        examples.insert(heading.to_owned(), values.collect());
    }
    examples
}

fn documented(examples: &BTreeMap<String, Vec<Value>>, heading: &str) -> Value {
    let found = examples.get(heading).and_then(|found| found.first());
    found.expect(heading).clone()
}

#[test]
fn the_output_is_what_the_page_shows() {
    let home = CliHome::new();
    home.write("w.yaml", WORKFLOW);
    let examples = examples();
    let ran = home.json(&["run", "w.yaml", "--json"]);
    let job = ran.first().map(|it| at(it, "/job").clone()).expect("a job");
    let job = job.as_str().expect("a text");
    let north = format!("{job}/north");
    let compare = |heading: &str, printed: &Value| {
        let expected = shape(&documented(&examples, heading));
        assert_eq!(shape(printed), expected, "{heading}: {printed}");
    };
    compare("run", ran.first().expect("an object"));
    for (heading, arguments) in [
        ("ls", &["ls", "--json"][..]),
        ("show", &["show", job, "--json"]),
        ("attempts", &["attempts", &north, "--json"]),
        ("explain JOB", &["explain", job, "--json"]),
        ("explain JOB/ITEM", &["explain", &north, "--json"]),
        ("logs", &["logs", &north, "--json"]),
        ("budget show", &["budget", "show", job, "--json"]),
        ("budget top-up", &["budget", "top-up", job, "10", "--json"]),
        ("check", &["check", "w.yaml", "--json"]),
        ("schedule", &["schedule", "w.yaml", "--json"]),
        ("explain-config", &["explain-config", "w.yaml", "--json"]),
    ] {
        let printed = home.json(arguments);
        compare(heading, printed.first().expect("an object"));
    }
    let events = home.json(&["events", job, "--json"]);
    let retry = events.iter().find(|it| at(it, "/type") == "retry_scheduled");
    compare("events", retry.expect("a retry"));
    let exported = home.run(&["state", "export", job]).exits(0).out;
    compare("state export", &serde_json::from_str(&exported).expect("JSON"));
    home.write("state.json", &exported);
    let import = ["state", "import", "state.json", "--workflow", "w.yaml", "--json"];
    compare("state import", home.json(&import).first().expect("an object"));
}

#[test]
fn waiting_and_resumed_items_are_shown_as_the_page_says() {
    let home = CliHome::new();
    let retry = "retry_config: {attempts: 2, initial_delay: 1h, max_delay: 3h}";
    home.write("w.yaml", &format!("- {{id: ask, shell: exit 3, {retry}}}\n"));
    let mut run = home.command(&["run", "w.yaml"]).spawn().expect("it runs");
    while !home.run(&["events", "@last"]).out.contains("retry_scheduled") {}
    run.kill().expect("killed");
    run.wait().expect("gone");
    let examples = examples();
    let shown = home.json(&["show", "@last", "--json"]);
    is_example("show", 1, at(shown.first().expect("an object"), "/waiting/0"));
    let explained = home.json(&["explain", "@last/ask", "--json"]);
    let next = explained.first().map(|it| at(it, "/next").clone());
    let expected = examples.get("explain JOB/ITEM").and_then(|it| it.get(1));
    assert_eq!(next.as_ref().map(shape), expected.map(shape));
    let mut run = home.command(&["resume", "@last"]).spawn().expect("it runs");
    while !home.run(&["events", "@last"]).out.contains("job_resumed") {}
    run.kill().expect("killed");
    run.wait().expect("gone");
    let resumes = home.json(&["show", "@last", "--resumes", "--json"]);
    let expected = documented(&examples, "show --resumes");
    assert_eq!(resumes.first().map(shape), Some(shape(&expected)));
}

/// The one object, or the first, that a command prints is as the page says.
fn is_documented(home: &CliHome, heading: &str, arguments: &[&str]) -> Value {
    let printed = home.json(arguments);
    let first = printed.first().expect(heading);
    let expected = documented(&examples(), heading);
    assert_eq!(shape(first), shape(&expected), "{heading}: {first}");
    first.clone()
}

#[test]
fn dead_letters_are_as_the_page_says() {
    let home = CliHome::new();
    home.write("w.yaml", WORKFLOW);
    home.run(&["run", "w.yaml"]).exits(4);
    let listed = is_documented(&home, "dlq ls", &["dlq", "ls", "@last", "--json"]);
    let shown = home.json(&["dlq", "show", "@last", "--json"]);
    assert_eq!(shown.first(), Some(&listed));
    is_documented(&home, "dlq group", &["dlq", "group", "@last", "--json"]);
    let dry = ["dlq", "redrive", "@last", "--dry-run", "--json"];
    let would = is_documented(&home, "dlq redrive --dry-run", &dry);
    assert_eq!(at(&would, "/redriven"), false);
    is_documented(&home, "run", &["dlq", "redrive", "@last", "--json"]);
    let exported = home.run(&["dlq", "export", "@last", "--json"]).exits(0);
    assert_eq!(exported.out, "\"north\"\n");
    let dropped = is_documented(&home, "dlq drop", &["dlq", "drop", "@last", "--all", "--yes", "--json"]);
    assert_eq!(at(&dropped, "/dropped"), true);
}

/// What stands at a place is as the example with this number under a heading.
fn is_example(heading: &str, number: usize, printed: &Value) {
    let examples = examples();
    let expected = examples.get(heading).and_then(|found| found.get(number));
    let expected = expected.expect(heading);
    assert_eq!(shape(printed), shape(expected), "{heading}: {printed}");
}

#[test]
fn breakers_and_what_they_hold_are_as_the_page_says() {
    let home = CliHome::new();
    let breaker = "{name: payments, failure_threshold: 1, recovery_timeout: 1h, max_hold: 2h}";
    home.write(
        "w.yaml",
        &format!(
            "- id: charge\n  shell: exit 3\n  breaker: {breaker}\n  \
             retry_config: {{initial_delay: 1ms}}\n"
        ),
    );
    let mut run = home.command(&["run", "w.yaml"]).spawn().expect("it runs");
    let events = || home.json(&["events", "@last", "--json"]);
    while !events().iter().any(|event| at(event, "/type") == "held") {}
    run.kill().expect("killed");
    run.wait().expect("gone");
    let listed = is_documented(&home, "breaker ls", &["breaker", "ls", "--json"]);
    let show = ["breaker", "show", "payments", "--json"];
    is_documented(&home, "breaker show", &show);
    let trip = ["breaker", "trip", "payments", "--json"];
    is_documented(&home, "breaker ls", &trip);
    let shown = home.json(&["show", "@last", "--json"]);
    let shown = shown.first().expect("an object");
    is_example("show", 2, at(shown, "/held/0"));
    assert_eq!(at(shown, "/breakers/0/held"), 1);
    assert_eq!(at(shown, "/breakers/0/breaker"), at(&listed, "/breaker"));
    let explained = home.json(&["explain", "@last/charge", "--json"]);
    let explained = explained.first().expect("an object");
    assert_eq!(at(explained, "/status"), "held");
    assert_eq!(at(explained, "/held/breaker"), "payments");
    let held = at(explained, "/history/1");
    assert_eq!(at(held, "/type"), "held");
    assert_eq!(at(held, "/why"), "open");
    assert_eq!(at(held, "/attempts_left"), 3);
    let reset = ["breaker", "reset", "payments", "--json"];
    let reset = is_documented(&home, "breaker ls", &reset);
    assert_eq!(at(&reset, "/state"), "closed");
}

#[test]
fn a_completion_rule_and_a_tolerance_are_as_the_page_says() {
    let home = CliHome::new();
    home.write(
        "w.yaml",
        "
mode: mapreduce
map:
  input: {shell: \"printf 'north\\neast\\n'\"}
  max_parallel: 1
  best_effort: true
  error_policy: {max_failures: 5}
  agent_template: [{shell: 'true'}]
",
    );
    home.run(&["run", "w.yaml"]).exits(0);
    let shown = home.json(&["show", "@last", "--json"]);
    let shown = shown.first().expect("an object");
    is_example("show", 3, at(shown, "/best_effort"));
    is_example("show", 4, at(shown, "/tolerance"));
    let rule = at(shown, "/best_effort");
    assert_eq!(at(rule, "/reason"), "min_dcs_reached (1/1)");
    assert_eq!(at(rule, "/dcs_completed/0"), "north");
    assert_eq!(at(rule, "/dcs_missing/0"), "east");
    assert_eq!(at(shown, "/missing/0/item"), "east");
}

#[test]
fn a_typed_job_has_its_words_and_no_file_and_a_seed_is_a_text() {
    let home = CliHome::new();
    home.run_with("a\n", &["map", "--quiet", "--", "test", "-n", "{}"]).exits(0);
    home.run(&["exec", "--quiet", "--", "sh", "-c", "exit 0", "x"]).exits(0);
    let listed = home.json(&["ls", "--json"]);
    let words = |line: usize| at(&listed[line], "/argv").clone();
    assert_eq!(words(0), serde_json::json!(["sh", "-c", "exit 0", "x"]), "what was typed last");
    assert_eq!(words(1), serde_json::json!(["test", "-n", "{}"]));
    for line in &listed {
        assert_eq!(at(line, "/workflow"), &Value::Null);
        let seed = at(line, "/seed").as_str().expect("a text");
        assert!(seed.parse::<u64>().is_ok(), "{seed}");
        let shown = home.json(&["show", at(line, "/job").as_str().expect("an id"), "--json"]);
        for name in ["job", "name", "workflow", "argv", "submitted_at", "ended_at", "seed"] {
            let name = format!("/{name}");
            assert_eq!(at(&shown[0], &name), at(line, &name), "{name}");
        }
    }
    let events = home.json(&["events", "@last", "--json"]);
    assert_eq!(at(&events[0], "/seed"), at(&listed[0], "/seed"));
}

#[test]
fn an_error_is_one_object_on_standard_error() {
    let home = CliHome::new();
    home.write("bad.yaml", "- shel: x\n");
    home.write("w.yaml", "- shell: 'true'\n");
    home.run(&["run", "w.yaml"]).exits(0);
    let page = documented(&examples(), "errors");
    for (arguments, code, exit) in [
        (&["show", "nope", "--json"][..], "no_job", 6),
        (&["explain", "@last/nope", "--json"], "no_item", 6),
        (&["explain", "@last/shell-1/nope", "--json"], "no_command", 6),
        (&["breaker", "show", "nope", "--json"], "no_breaker", 6),
        (&["run", "nope.yaml", "--json"], "no_file", 6),
        (&["run", "bad.yaml", "--json"], "invalid_workflow", 3),
        (&["show", "@last", "--bogus", "--json"], "usage", 2),
        (&["dlq", "redrive", "@last", "--rate", "0", "--json"], "usage", 2),
    ] {
        let printed = home.run(arguments).exits(exit);
        assert_eq!(printed.out, "", "{arguments:?}");
        let error: Value = serde_json::from_str(&printed.err).expect(&printed.err);
        assert_eq!(shape(&error), shape(&page), "{error}");
        assert_eq!(at(&error, "/error/code"), code, "{error}");
        let message = at(&error, "/error/message").as_str().expect("a text");
        assert!(!message.is_empty() && !message.contains('\x1b'), "{message}");
    }
    let plain = home.run(&["show", "nope"]).exits(6);
    assert!(plain.err.starts_with("error: job `nope` not found"), "{}", plain.err);
}

#[test]
fn a_map_prints_every_item_and_then_what_a_run_does() {
    let home = CliHome::new();
    let printed = home.run_with("a\nb\n", &["map", "--json", "--", "true"]);
    let lines = printed.exits(0).out;
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let [first, _, report] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!(shape(first), shape(&documented(&examples(), "map")));
    assert_eq!(shape(report), shape(&documented(&examples(), "run")));
}

#[test]
fn requests_to_a_job_are_answered_as_the_page_says() {
    let home = CliHome::new();
    home.write("w.yaml", "- shell: while [ ! -e gone ]; do sleep 0.01; done\n");
    let mut run = home.command(&["run", "w.yaml"]).spawn().expect("it runs");
    let events = || home.run(&["events", "@last"]).out;
    while !events().contains("attempt_started") {}
    let paused = is_documented(&home, "pause", &["pause", "@last", "--json"]);
    assert_eq!(at(&paused, "/paused"), true);
    assert_eq!(at(&paused, "/owner"), run.id());
    let unpaused = is_documented(&home, "pause", &["unpause", "@last", "--json"]);
    assert_eq!(at(&unpaused, "/paused"), false);
    is_documented(&home, "cancel", &["cancel", "@last", "--json"]);
    run.wait().expect("it ends");
    let ended = is_documented(&home, "run", &["cancel", "@last", "--json"]);
    assert_eq!(at(&ended, "/status"), "cancelled");
}

#[test]
fn archive_prune_and_rm_behave_as_the_page_says() {
    let home = CliHome::new();
    home.write("w.yaml", "- shell: 'true'\n");
    home.run(&["run", "w.yaml"]).exits(0);
    home.run(&["run", "w.yaml"]).exits(0);
    let dry = ["prune", "--older-than", "0s", "--dry-run", "--json"];
    assert_eq!(at(&is_documented(&home, "rm", &dry), "/removed"), false);
    let removed = is_documented(&home, "rm", &["rm", "@last", "--yes", "--json"]);
    assert_eq!(at(&removed, "/removed"), true);
    let prune = ["prune", "--older-than", "0s", "--yes", "--json"];
    assert_eq!(at(&is_documented(&home, "rm", &prune), "/removed"), true);
    home.run(&["run", "w.yaml"]).exits(0);
    let archived = is_documented(&home, "archive", &["archive", "@last", "--json"]);
    let file = at(&archived, "/file").as_str().expect("a path");
    is_documented(&home, "archive", &["restore", file, "--json"]);
    is_documented(&home, "store check", &["store", "check", "--json"]);
    is_documented(&home, "store compact", &["store", "compact", "--json"]);
    is_documented(&home, "store path", &["store", "path", "--json"]);
    is_documented(&home, "doctor", &["doctor", "--json"]);
}
