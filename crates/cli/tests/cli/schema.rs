//! `undaunted schema`: an editor accepts and refuses what `check` accepts and refuses.
//!
//! What a schema cannot express is listed here one by one, with the reason, so that a new, undecided
//! difference is a red test.

use std::fs;

use crate::binary::{repository, undaunted};
use crate::check::yaml_texts;
use jsonschema::Validator;
use serde_json::Value;
use undaunted_engine::workflow::{Operator, Source, check};

fn validator() -> Validator {
    let output = undaunted(&["schema"]);
    let schema: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    jsonschema::meta::validate(&schema).expect("a schema by the rules for schemas");
    jsonschema::validator_for(&schema).expect("a schema")
}

/// What the schema says against a text.
fn objections(validator: &Validator, yaml: &str) -> Vec<String> {
    // By YAML 1.2 `y` and `no` are texts, for editors and for `check`.
    let options = serde_saphyr::options! { strict_booleans: true };
    let value: Value = serde_saphyr::from_str_with_options(yaml, options).expect("YAML");
    let errors = validator.iter_errors(&value);
    errors.map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// What `check` says against it.
fn errors(yaml: &str) -> Vec<String> {
    let source = Source::new("x.yaml", yaml);
    let checked = check(&source, &Operator::default());
    if !checked.has_errors() {
        return Vec::new();
    }
    let messages = checked.diagnostics.into_iter();
    messages.map(|found| found.message).collect()
}

/// Files that both accept.
const VALID: &[&str] = &[
    "[{shell: 'true'}]",
    "{commands: [{shell: 'true'}]}",
    "{mode: sequence, commands: {commands: [{shell: 'true'}]}}",
    "[{claude: hello}, {http: {url: 'http://a.example'}}]",
    "[{write_file: {path: a, content: b, mode: '0644', create_dirs: true}}]",
    "[{http: {url: 'https://a.example', method: POST, headers: {X-Id: 1}, body: {a: null}, expect: [2xx, 304]}}]",
    "[{shell: a, id: first, timeout: 1h 30m, env: {A: 1, _b: true}, working_dir: /tmp, output_limit: 1}]",
    "[{shell: a, capture_output: one, capture_format: json}]",
    "[{shell: a, timeout: 1.5h}, {shell: b, timeout: 90sec}, {shell: c, timeout: 2min}]",
    "[{shell: a, timeout: 1d12hr}, {shell: b, timeout: 1w}, {shell: c, timeout: 500us}]",
    "[{shell: a, timeout: 5µs}, {shell: b, timeout: 7ns}, {shell: c, timeout: 2ms}]",
    "[{shell: a, retry_config: {}}]",
    "[{shell: a, retry_config: {attempts: unlimited, initial_delay: 0s, jitter: full}}]",
    "[{shell: a, retry_config: {max_retries: 0, backoff: {fixed: {delay: 5s}}}}]",
    "[{shell: a, retry_config: {backoff: {exponential: {base: 1, initial: 1s}}, jitter_factor: 1}}]",
    "[{shell: a, retry_config: {backoff: {custom: {delays: [1s, 2m]}}, jitter_factor: 0}}]",
    "[{shell: a, retry_config: {retry_on: [network, {pattern: busy}], retry_statuses: [404, '5xx', 500-599]}}]",
    "[{shell: a, retry_config: {rules: [{exit_code: [1, 255], signal: [TERM, SIGKILL, 64], class: timeout, then: retry, retry_config: {attempts: 9}}]}}]",
    "[{shell: a, breaker: {name: b, failure_threshold: 1, half_open_max_calls: 1, recovery_timeout: 0s}}]",
    "[{http: {url: 'http://a.example'}, breaker: {}}]",
    "[{http: {url: 'http://a.example'}, breaker: true}]",
    "[{shell: a, breaker: true}, {shell: b, breaker: false}, {claude: c, breaker: {max_hold: 1m}}]",
    "{mode: flow, goals: [a], steps: [{id: a, type: async, http: {endpoint: 'http://a.example'}, breaker: true}]}",
    "[{shell: echo a, capture_output: host}, {http: {url: '${host}/a b'}}, {http: {url: 'http://${host}/a b'}}]",
    "[{shell: a, on_failure: {shell: b, max_attempts: 2, retry_config: {attempts: 1}}}]",
    "[{shell: a, on_failure: [{shell: b}, {claude: c}], on_success: {shell: d, on_failure: {shell: e}}}]",
    "[{shell: a, on_failure: {commands: [{shell: b}], fail_workflow: true}, on_interrupt: stop}]",
    "{name: n, shell: /bin/bash, env: {A: b}, secrets: {T: {env: X}, U: {file: y}}, commands: [{shell: a}]}",
    "{retry_budget: 0, retry_budget_per_workflow: 5, deadline: 1h, retry_config: {}, commands: [{shell: a}]}",
    "{agents: {reviewer: [r, '{prompt}']}, commands: [{reviewer: hello}, {shell: a, on_failure: {reviewer: b}}]}",
    "{agents: {reviewer: [r, 'p={prompt}'], claude: ['{prompt}']}, commands: [{claude: a, on_success: [{reviewer: b}]}]}",
    "{agents: {}, commands: [{shell: a}]}",
    "{mode: mapreduce, map: {input: a.json, agent_template: [{shell: a}]}}",
    "{mode: mapreduce, setup: null, reduce: null, map: {input: a.json, agent_template: {commands: [{shell: a}]}}}",
    "{mode: mapreduce, setup: [{shell: a}], reduce: [{shell: b}], map: {input: {shell: ls, format: lines}, agent_template: [{shell: c}]}}",
    "{mode: mapreduce, map: {input: {file: a}, max_parallel: $WIDTH, agent_timeout_secs: 0.5, agent_template: [{shell: a}]}}",
    "{mode: mapreduce, map: {input: a, max_parallel: '${WIDTH}', timeout_config: {timeout: 1s, agent_timeout_secs: 9}, agent_template: [{shell: a}]}}",
    "{mode: mapreduce, max_failures: 1, on_item_failure: stop, map: {input: a, error_policy: {failure_threshold: 0.5}, agent_template: [{shell: a}]}}",
    "{mode: mapreduce, map: {input: a, best_effort: true, best_effort_min_dcs: 2, best_effort_deadline_seconds: 0, on_complete: leave, agent_template: [{shell: a}]}}",
    "{mode: mapreduce, agents: {r: ['{prompt}']}, map: {input: a, agent_template: [{r: '${item}', timeout: 1s}]}}",
    "{mode: flow, goals: [a], steps: [{id: a, type: sync, http: {endpoint: 'http://a.example', timeout: 0}}]}",
    "{mode: flow, goals: [a], init: {x: [1]}, steps: [{id: a, type: async, http: {endpoint: 'http://a.example'}, work_config: {max_retries: -1, backoff: 0}, memoizable: false}]}",
    "{mode: flow, goals: [a], steps: [{id: a, type: sync, http: {endpoint: 'http://a.example'}, predicate: {language: CEL, script: x > 1}, breaker: {}}]}",
    "{mode: flow, goals: [b], steps: [{id: a, type: flow, flow: {goals: [b]}}, {id: b, type: sync, http: {endpoint: 'http://a.example'}, attributes: {k: {role: const, default: '1'}, o: {role: output, for_each: false}}}]}",
];

/// Files that both refuse.
const BROKEN: &[&str] = &[
    "[]",
    "text",
    "{}",
    "[text]",
    "[{}]",
    "[{shel: a}]",
    "[{shell: a, timout: 1s}]",
    "[{shell: a, claude: b}]",
    "[{id: lonely}]",
    "[{shell: [a]}]",
    "[{shell: ''}]",
    "[{reviewer: a}]",
    "{commands: []}",
    "{commands: {commands: []}}",
    "{commands: null}",
    "{nmae: a, commands: [{shell: a}]}",
    "{name: a}",
    "{mode: parallel, commands: [{shell: a}]}",
    "{shell: bash, commands: [{shell: a}]}",
    "{commands: [{reviewer: a}]}",
    "{commands: [{shell: a, on_succes: {shell: b}}]}",
    "{agents: {}, commands: [{reviewer: a}]}",
    "{agents: {reviewer: [r]}, commands: [{shell: a}]}",
    "{agents: {timeout: ['{prompt}']}, commands: [{shell: a}]}",
    "{agents: {reviewer: '{prompt}'}, commands: [{shell: a}]}",
    "{agents: {reviewer: ['{prompt}']}, commands: [{id: lonely}]}",
    "{agents: {reviewer: ['{prompt}']}, commands: [{shell: a, timout: 1s}]}",
    "{agents: {reviewer: ['{prompt}']}, commands: [{shell: a, reviewer: b}]}",
    "{agents: {reviewer: ['{prompt}']}, commands: [{shell: a, retry_config: {atempts: 1}}]}",
    "{commands: [{shell: a}], secrets: {T: {env: X, file: y}}}",
    "{commands: [{shell: a}], secrets: {T: {}}}",
    "{commands: [{shell: a}], secrets: {a-b: {env: X}}}",
    "{commands: [{shell: a}], deadline: 0s}",
    "{commands: [{shell: a}], retry_budget: 5m}",
    "{commands: [{shell: a}], retry_budget: -1}",
    "{commands: [{shell: a}], map: {input: a, agent_template: [{shell: a}]}}",
    "{mode: sequence, commands: [{shell: a}], setup: [{shell: a}]}",
    "[{shell: a, timeout: 30}]",
    "[{shell: a, timeout: '30'}]",
    "[{shell: a, timeout: 2 minutes}]",
    "[{shell: a, timeout: 2 m}]",
    "[{shell: a, timeout: 2minutes}]",
    "[{shell: a, timeout: 1.5ns}]",
    "[{shell: a, timeout: 2day}]",
    "[{shell: a, timeout: 1y}]",
    "[{shell: a, timeout: 1M}]",
    "[{shell: a, timeout: .5s}]",
    "[{shell: a, timeout: -1s}]",
    "[{shell: a, timeout: 0s}]",
    "[{shell: a, timeout: ''}]",
    "[{shell: a, id: two words}]",
    "[{shell: a, id: a/b}]",
    "[{shell: a, env: {a-b: c}}]",
    "[{shell: a, env: [a]}]",
    "[{shell: a, capture_output: item}]",
    "[{shell: a, capture_output: 1st}]",
    "[{shell: a, output_limit: 0}]",
    "[{http: {}}]",
    "[{http: {url: a.example}}]",
    "[{http: {url: 'http://'}}]",
    "[{http: {url: 'http://a b'}}]",
    "[{http: {url: 'http://a.example', expect: []}}]",
    "[{http: {url: 'http://a.example', method: get}}]",
    "[{http: {url: 'http://a.example', expect: 600}}]",
    "[{http: {url: 'http://a.example', headers: {'a b': c}}}]",
    "[{write_file: {path: a}}]",
    "[{write_file: {path: a, content: b, mode: '0999'}}]",
    "[{write_file: {path: a, content: b, mode: 77777}}]",
    "[{shell: a, retry_config: {attempts: -1}}]",
    "[{shell: a, retry_config: {attempts: '3'}}]",
    "[{shell: a, retry_config: {attempts: 5000000000}}]",
    "[{shell: a, retry_config: {backoff: quadratic}}]",
    "[{shell: a, retry_config: {backoff: linear}}]",
    "[{shell: a, retry_config: {backoff: {linear: {}}}}]",
    "[{shell: a, retry_config: {backoff: {fixed: {}, fibonacci: {}}}}]",
    "[{shell: a, retry_config: {backoff: {}}}]",
    "[{shell: a, retry_config: {backoff: {exponential: {base: 0.5}}}}]",
    "[{shell: a, retry_config: {jitter: some}}]",
    "[{shell: a, retry_config: {jitter_factor: 1.1}}]",
    "[{shell: a, retry_config: {jitter_factor: -0.1}}]",
    "[{shell: a, retry_config: {retry_on: network}}]",
    "[{shell: a, retry_config: {rules: [{exit_code: 1}]}}]",
    "[{shell: a, retry_config: {rules: [{exit_code: 256, then: stop}]}}]",
    "[{shell: a, retry_config: {rules: [{exit_code: [], then: stop}]}}]",
    "[{shell: a, retry_config: {rules: [{signal: NOSUCH, then: stop}]}}]",
    "[{shell: a, retry_config: {rules: [{signal: [65], then: stop}]}}]",
    "[{shell: a, retry_config: {rules: [{class: odd, then: stop}]}}]",
    "[{shell: a, retry_config: {rules: [{then: stop, retry_config: {}}]}}]",
    "[{shell: a, retry_config: {rules: [{then: retry, retry_config: {retry_on: [network]}}]}}]",
    "[{shell: a, breaker: 1}]",
    "[{shell: a, breaker: on}]",
    "[{shell: a, breaker: [true]}]",
    "[{shell: a, breaker: {name: two words}}]",
    "[{shell: a, breaker: {name: b, failure_threshold: 0}}]",
    "[{shell: a, breaker: {name: b, half_open_max_calls: 0}}]",
    "[{shell: a, on_failure: b}]",
    "[{shell: a, on_failure: []}]",
    "[{shell: a, on_failure: {max_attempts: 1}}]",
    "[{shell: a, on_failure: {commands: [{shell: b}], shell: c}}]",
    "[{shell: a, on_failure: {shell: b, breaker: {name: c}}}]",
    "[{shell: a, on_failure: [{shell: b, on_failure: {shell: c}}]}]",
    "[{shell: a, on_failure: {commands: [{shell: b, on_success: {shell: c}}]}}]",
    "[{shell: a, on_failure: [{shell: b, on_interrupt: stop}]}]",
    "[{shell: a, on_success: []}]",
    "{mode: mapreduce}",
    "{mode: mapreduce, map: {input: a}}",
    "{mode: mapreduce, map: {agent_template: [{shell: a}]}}",
    "{mode: mapreduce, map: {input: {}, agent_template: [{shell: a}]}}",
    "{mode: mapreduce, map: {input: {file: a, shell: b}, agent_template: [{shell: a}]}}",
    "{mode: mapreduce, map: {input: a, agent_template: []}}",
    "{mode: mapreduce, map: {input: a, max_parallel: 0, agent_template: [{shell: a}]}}",
    "{mode: mapreduce, map: {input: a, max_parallel: WIDTH, agent_template: [{shell: a}]}}",
    "{mode: mapreduce, map: {input: a, agent_timeout_secs: 0, agent_template: [{shell: a}]}}",
    "{mode: mapreduce, map: {input: a, agent_timeout_secs: 30s, agent_template: [{shell: a}]}}",
    "{mode: mapreduce, map: {input: a, retry_config: {}, agent_template: [{shell: a}]}}",
    "{mode: mapreduce, map: {input: a, agent_template: [{shell: a}]}, commands: [{shell: a}]}",
    "{mode: mapreduce, failure_threshold: 1.5, map: {input: a, agent_template: [{shell: a}]}}",
    "{mode: mapreduce, max_failures: 0, map: {input: a, agent_template: [{shell: a}]}}",
    "{mode: mapreduce, max_failures: 3, on_item_failure: stop, map: {input: a, agent_template: [{shell: a}]}}",
    "{mode: mapreduce, continue_on_failure: true, on_item_failure: stop, map: {input: a, agent_template: [{shell: a}]}}",
    "{mode: mapreduce, setup: [], map: {input: a, agent_template: [{shell: a}]}}",
    "{mode: flow, goals: [a]}",
    "{mode: flow, steps: [{id: a, type: sync, http: {endpoint: 'http://a.example'}}]}",
    "{mode: flow, goals: [], steps: [{id: a, type: sync, http: {endpoint: 'http://a.example'}}]}",
    "{mode: flow, goals: [a], retry_config: {}, steps: [{id: a, type: sync, http: {endpoint: 'http://a.example'}}]}",
    "{mode: flow, goals: [a], steps: [{id: a, type: sync}]}",
    "{mode: flow, goals: [a], steps: [{id: a, type: flow}]}",
    "{mode: flow, goals: [a], steps: [{id: a, type: script, http: {endpoint: 'http://a.example'}}]}",
    "{mode: flow, goals: [a], steps: [{id: a, type: sync, http: {endpoint: a.example}}]}",
    "{mode: flow, goals: [a], steps: [{id: a, type: sync, http: {endpoint: 'http://${where}'}}]}",
    "{mode: flow, goals: [a], steps: [{id: a, type: flow, flow: {goals: [a]}, http: {endpoint: 'http://a.example'}}]}",
    "{mode: flow, goals: [a], steps: [{id: a, type: sync, http: {endpoint: 'http://a.example'}, memoizable: true}]}",
    "{mode: flow, goals: [a], steps: [{id: a, type: sync, http: {endpoint: 'http://a.example'}, work_config: {max_retries: -2}}]}",
    "{mode: flow, goals: [a], steps: [{id: a, type: sync, http: {endpoint: 'http://a.example'}, work_config: {max_retries: 1.5}}]}",
    "{mode: flow, goals: [a], steps: [{id: a, type: sync, http: {endpoint: 'http://a.example'}, predicate: {language: lua, script: x}}]}",
    "{mode: flow, goals: [a], steps: [{id: a, type: sync, http: {endpoint: 'http://a.example'}, attributes: {k: {role: const}}}]}",
    "{mode: flow, goals: [a], steps: [{id: a, type: sync, http: {endpoint: 'http://a.example'}, attributes: {k: {role: output, for_each: true}}}]}",
];

/// What `check` refuses and a schema cannot, and why.
const ONLY_CHECK: &[(&str, &str)] = &[
    ("the name in a template is looked up", "[{shell: 'echo ${unknown.name}'}]"),
    ("an item exists in a map only", "[{shell: 'echo ${item.id}'}]"),
    ("two commands must not share an id", "[{shell: a, id: x}, {shell: b, id: x}]"),
    (
        "two breakers of one name are compared",
        "[{shell: a, breaker: {name: x}}, {shell: b, breaker: {name: x, failure_threshold: 1}}]",
    ),
    ("names in two mappings are compared", "{env: {A: b}, secrets: {A: {env: B}}, commands: [{shell: a}]}"),
    (
        "two spellings of one setting are compared",
        "[{shell: a, retry_config: {attempts: 1, max_retries: 2}}]",
    ),
    (
        "the same, one of them inside of backoff",
        "[{shell: a, retry_config: {initial_delay: 1s, backoff: {fixed: {delay: 2s}}}}]",
    ),
    ("the ends of a range are compared", "[{http: {url: 'http://a.example', expect: 299-200}}]"),
    ("a regular expression is compiled", "[{shell: a, retry_config: {retry_on: [{pattern: '('}]}}]"),
    (
        "a rule that holds needs a breaker, which may be given elsewhere",
        "[{shell: a, retry_config: {rules: [{then: hold}]}}]",
    ),
    ("whole numbers of JSON may have a point", "[{shell: a, retry_config: {attempts: 3.0}}]"),
    ("too long to be counted in nanoseconds", "[{shell: a, retry_config: {max_delay: 999999w}}]"),
    (
        "with agents, any key of a command may be one",
        "{agents: {reviewer: ['{prompt}']}, commands: [{reviwer: a}]}",
    ),
    (
        "the same, beside an agent that is one",
        "{agents: {reviewer: ['{prompt}']}, commands: [{reviewer: a, timout: 1s}]}",
    ),
    (
        "a filter has a language of its own",
        "{mode: mapreduce, map: {input: a, filter: 'item.a = 1', agent_template: [{shell: a}]}}",
    ),
    (
        "and so has a path",
        "{mode: mapreduce, map: {input: a.json, json_path: '$.[', agent_template: [{shell: a}]}}",
    ),
    (
        "one deadline in two places is compared",
        "{mode: mapreduce, map: {input: a, agent_timeout_secs: 1, timeout_config: {agent_timeout_secs: 2}, agent_template: [{shell: a}]}}",
    ),
    (
        "a goal is a step of the flow",
        "{mode: flow, goals: [b], steps: [{id: a, type: sync, http: {endpoint: 'http://a.example'}}]}",
    ),
    (
        "what a step takes has to come from somewhere",
        "{mode: flow, goals: [a], steps: [{id: a, type: sync, http: {endpoint: 'http://a.example'}, attributes: {x: {role: required}}}]}",
    ),
    (
        "a default is JSON inside of a text",
        "{mode: flow, goals: [a], steps: [{id: a, type: sync, http: {endpoint: 'http://a.example'}, attributes: {x: {role: const, default: oops}}}]}",
    ),
    (
        "a cap is compared with the first delay",
        "{mode: flow, goals: [a], steps: [{id: a, type: sync, http: {endpoint: 'http://a.example'}, work_config: {max_retries: 1, backoff: 9, max_backoff: 1}}]}",
    ),
];

/// What an editor should mark although `check` lets it pass, and why.
const ONLY_SCHEMA: &[(&str, &str)] = &[(
    "a setting that is never used is never looked at",
    "{retry_config: {jitter_factor: 3}, commands: [{shell: a, retry_config: {jitter_factor: 0.3}}]}",
)];

#[test]
fn schema_and_check_accept_the_same_files() {
    let validator = validator();
    assert!(VALID.len() >= 40 && BROKEN.len() >= 100);
    for yaml in VALID {
        assert_eq!(errors(yaml), [""; 0], "check: {yaml}");
        assert_eq!(objections(&validator, yaml), [""; 0], "schema: {yaml}");
    }
}

#[test]
fn schema_and_check_refuse_the_same_files() {
    let validator = validator();
    for yaml in BROKEN {
        assert_ne!(errors(yaml), [""; 0], "check accepts {yaml}");
        let objections = objections(&validator, yaml);
        assert_ne!(objections, [""; 0], "the schema accepts {yaml}");
    }
}

#[test]
fn the_documented_differences_are_known() {
    let validator = validator();
    for (why, yaml) in ONLY_CHECK {
        assert_ne!(errors(yaml), [""; 0], "check: {why}");
        assert_eq!(objections(&validator, yaml), [""; 0], "schema: {why}");
    }
    for (why, yaml) in ONLY_SCHEMA {
        assert_eq!(errors(yaml), [""; 0], "check: {why}");
        assert_ne!(objections(&validator, yaml), [""; 0], "schema: {why}");
    }
}

/// The blocks in the pages about errors that `check` has no error to tell about: what was mended, and
/// what is a warning only.
fn valid_blocks() -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(repository().join("docs/errors")).expect("pages") {
        let path = entry.expect("an entry").path();
        let page = fs::read_to_string(&path).expect("text");
        for block in page.split("```yaml\n").skip(1) {
            let block = block.split("```").next().unwrap_or_default();
            if errors(block).is_empty() {
                texts.push((path.display().to_string(), block.to_owned()));
            }
        }
    }
    assert!(texts.len() >= 30, "{} valid blocks", texts.len());
    texts
}

#[test]
fn everything_the_documents_show_as_valid_is_accepted() {
    let validator = validator();
    for (name, yaml) in yaml_texts().into_iter().chain(valid_blocks()) {
        assert_eq!(objections(&validator, &yaml), [""; 0], "{name}");
    }
}

#[test]
fn an_unknown_key_is_reported_with_its_position() {
    let validator = validator();
    for (yaml, place) in [
        ("[{shell: a, timout: 1s}]", "/0"),
        ("{commands: {commands: [{shell: a}, {shell: b}]}, nmae: c}", ""),
        ("{mode: mapreduce, map: {input: a, agent_template: [{shell: a}], max_paralel: 3}}", "/map"),
        ("[{shell: a, retry_config: {atempts: 3}}]", "/0/retry_config"),
    ] {
        let found = objections(&validator, yaml);
        let wanted = format!("{place}: Additional properties are not allowed");
        let is_listed = found.iter().any(|objection| objection.starts_with(&wanted));
        assert!(is_listed, "{yaml}: {found:?}");
    }
}
