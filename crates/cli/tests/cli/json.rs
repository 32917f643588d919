//! `docs/json.md` is true: what each command prints has the fields of the page, and no others.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::binary::repository;
use crate::home::Home;
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
fn what_is_printed_is_what_the_page_says() {
    let home = Home::new();
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
        ("check", &["check", "w.yaml", "--json"]),
        ("schedule", &["schedule", "w.yaml", "--json"]),
    ] {
        let printed = home.json(arguments);
        compare(heading, printed.first().expect("an object"));
    }
    let events = home.json(&["events", job, "--json"]);
    let retry = events
        .iter()
        .find(|it| at(it, "/type") == "retry_scheduled");
    compare("events", retry.expect("a retry"));
    let exported = home.run(&["state", "export", job]).exits(0).out;
    compare(
        "state export",
        &serde_json::from_str(&exported).expect("JSON"),
    );
    home.write("state.json", &exported);
    let import = [
        "state",
        "import",
        "state.json",
        "--workflow",
        "w.yaml",
        "--json",
    ];
    compare(
        "state import",
        home.json(&import).first().expect("an object"),
    );
}

#[test]
fn what_waits_and_what_was_resumed_are_as_the_page_says() {
    let home = Home::new();
    let retry = "retry_config: {attempts: 2, initial_delay: 1h, max_delay: 3h}";
    home.write(
        "w.yaml",
        &format!("- {{id: ask, shell: exit 3, {retry}}}\n"),
    );
    let mut run = home.command(&["run", "w.yaml"]).spawn().expect("it runs");
    while !home
        .run(&["events", "@last"])
        .out
        .contains("retry_scheduled")
    {}
    run.kill().expect("killed");
    run.wait().expect("gone");
    let examples = examples();
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
