//! Values: captures, results of a map, items hostile to a shell, items too large for one.

use serde_json::{Value, json};

use crate::history::{all, one, text};
use crate::sandbox::Sandbox;

#[test]
fn the_output_of_a_command_is_passed_to_later_ones_in_its_format() {
    let (sandbox, _) = Sandbox::run_workflow(
        "
- {shell: 'printf \"two words\\n\\n\"', capture_output: plain}
- {shell: 'echo ''{\"a\": [1, {\"b\": \"deep\"}]}''', capture_output: data, capture_format: json}
- {shell: 'seq 1 3', capture_output: many, capture_format: lines}
- {shell: echo 42, capture_output: number, capture_format: number}
- {shell: echo true, capture_output: truth, capture_format: boolean}
- {id: said, shell: echo by step}
- shell: |
    printf '[%s]\\n' ${plain} ${data.a[1].b} ${many} ${number} ${truth} ${step.said.output} > log
",
        0,
    );
    let expected = ["[two words\n]", "[deep]", r#"[["1","2","3"]]"#, "[42]", "[true]", "[by step]"];
    assert_eq!(sandbox.read("log"), expected.join("\n") + "\n");
}

#[test]
fn output_of_the_wrong_format_is_permanent() {
    let (sandbox, report) = Sandbox::run_workflow(
        "
- shell: echo run >> log; echo not a number
  capture_output: number
  capture_format: number
  retry_config: {attempts: 3, initial_delay: 3ms}
",
        1,
    );
    assert_eq!(report["reason"], "permanent");
    assert_eq!(sandbox.lines("log"), ["run"]);
}

#[test]
fn a_capture_in_a_map_belongs_to_its_item() {
    let (sandbox, _) = Sandbox::run_workflow(
        "
mode: mapreduce
map:
  input: {shell: seq 1 8}
  agent_template:
    - {shell: 'echo of ${item}', capture_output: mine}
    - {shell: 'echo ${item} ${mine} >> log'}
",
        0,
    );
    let log = sandbox.sorted_lines("log");
    let expected: Vec<String> = (1..=8).map(|n| format!("{n} of {n}")).collect();
    assert_eq!(log, expected);
}

const RESULTS: &str = "
mode: mapreduce
map:
  input: {shell: printf 'c\\na\\nb\\n'}
  agent_template: [{shell: 'test ${item} != a && echo said ${item}'}]
reduce:
  - shell: printf '%s' ${map.results} > inline; cp ${map.results_file} whole
  - shell: until [ -e go ]; do sleep 0.01; done; cp ${map.results_file} again
";

#[test]
fn the_results_of_a_map_are_in_input_order_with_status_and_output() {
    let sandbox = Sandbox::of(RESULTS);
    sandbox.write("go", "");
    sandbox.run().exits(4);
    let results: Value = serde_json::from_str(&sandbox.read("inline")).unwrap();
    let expected = json!([
        {"item": "c", "status": "succeeded", "output": "said c"},
        {"item": "a", "status": "dead", "output": null},
        {"item": "b", "status": "succeeded", "output": "said b"},
    ]);
    assert_eq!(results, expected);
    let whole: Value = serde_json::from_str(&sandbox.read("whole")).unwrap();
    assert_eq!(whole, expected);
}

#[test]
fn the_results_of_a_map_survive_a_kill() {
    let (sandbox, engine) = Sandbox::start_workflow(RESULTS);
    Sandbox::wait_until("the first command of reduce", || sandbox.read("whole").ends_with(']'));
    engine.kill();
    sandbox.write("go", "");
    sandbox.resume().exits(4);
    assert_eq!(sandbox.read("again"), sandbox.read("whole"));
}

#[test]
fn no_item_becomes_code() {
    let hostile = [
        "$(touch pwned)",
        "`touch pwned`",
        "'; touch pwned; '",
        "\" ; touch pwned ; \"",
        "a  b\tc",
        "*",
        "~",
        "-n",
        "\\",
        "$HOME",
        "${HOME}",
        "${item}",
        "a'b\"c",
        "&& touch pwned",
        "> pwned",
        "\u{e9}\u{1f980}",
        "!x",
        "#no",
        "line\nbreak",
        "trailing\n",
        "",
    ];
    let sandbox = Sandbox::of(
        "
mode: mapreduce
map:
  input: items.json
  max_parallel: 1
  agent_template:
    - shell: |
        printf '%s|' ${item} \"${item}\" '${item}' >> log
        cat >> log <<END
        ${item}
        END
        printf '\\0' >> log
",
    );
    sandbox.write("items.json", &json!(hostile).to_string());
    sandbox.run().exits(0);
    let log = sandbox.read("log");
    let parts: Vec<&str> = log.split('\0').collect();
    for (value, printed) in hostile.iter().zip(&parts) {
        assert_eq!(printed, &format!("{value}|{value}|{value}|{value}\n"));
    }
    assert_eq!(parts.len(), hostile.len() + 1);
    assert!(!sandbox.path("pwned").exists());
}

#[test]
fn a_value_that_is_not_text_is_compact_json() {
    let sandbox = Sandbox::of(
        "
mode: mapreduce
map:
  input: items.json
  max_parallel: 1
  agent_template: [{shell: 'printf ''%s %s\\n'' ${item} ${item.n:-none} >> log'}]
",
    );
    sandbox.write("items.json", r#"[{"n": 1, "s": "x"}, [true, null], 1.50, "text"]"#);
    sandbox.run().exits(0);
    let expected = [r#"{"n":1,"s":"x"} 1"#, "[true,null] none", "1.5 none", "text none"];
    assert_eq!(sandbox.lines("log"), expected);
}

#[test]
fn a_missing_field_dead_letters_the_item_without_an_attempt() {
    let sandbox = Sandbox::of(
        "
mode: mapreduce
map:
  input: items.json
  agent_template:
    - shell: echo ${item.name} >> log
      retry_config: {attempts: 3, initial_delay: 3ms}
",
    );
    sandbox.write("items.json", r#"[{"name": "a"}, {"nam": "b"}, {"name": "c"}]"#);
    let report = sandbox.run().exits(4).json();
    assert_eq!(sandbox.lines("log").len(), 2);
    assert_eq!(report["attempts"], 2);
    let events = sandbox.events();
    let dead = one(&events, "item_dead_lettered");
    assert_eq!(dead["reason"], "permanent");
    assert!(text(&dead["error"]).contains("item.name"), "{dead}");
    let started = all(&events, "attempt_started");
    assert!(started.iter().all(|event| event["index"] != 1));
}

#[test]
fn a_value_too_large_for_a_command_is_refused_with_advice_that_works() {
    let large = "x".repeat(101 << 10);
    let sandbox = Sandbox::of(
        "
mode: mapreduce
map:
  input: items.json
  agent_template: [{shell: 'printf %s ${item.text} | wc -c >> log'}]
",
    );
    let items = json!([{"text": large}, {"text": "small"}]);
    sandbox.write("items.json", &items.to_string());
    sandbox.run().exits(4);
    let dead = one(&sandbox.events(), "item_dead_lettered").clone();
    assert!(text(&dead["error"]).contains("item_file"), "{dead}");
    assert_eq!(sandbox.lines("log"), ["5"]);

    sandbox.edit_workflow("printf %s ${item.text} |", "cat ${item_file} |");
    sandbox.run().exits(0);
    let whole = items[0].to_string().len();
    assert!(sandbox.lines("log").contains(&whole.to_string()), "{:?}", sandbox.lines("log"));
}

#[test]
fn a_large_result_is_refused_with_advice_that_works() {
    let workflow = "
mode: mapreduce
map:
  input: {shell: seq 1 3}
  agent_template: [{shell: 'head -c 60000 /dev/zero | tr ''\\0'' x'}]
reduce: [{shell: 'WHAT | wc -c > size'}]
";
    let (sandbox, report) = Sandbox::run_workflow(&workflow.replace("WHAT", "printf %s ${map.results}"), 1);
    assert!(text(&report["error"]).contains("map.results_file"), "{report}");
    sandbox.write("w.yaml", &workflow.replace("WHAT", "cat ${map.results_file}"));
    sandbox.run().exits(0);
    assert!(sandbox.read("size").trim().parse::<usize>().unwrap() > 180_000);
}
