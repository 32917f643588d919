//! Diagnostics of workflow files: all at once, with positions and help.

use undaunted_engine::workflow::{DiagnosticCode, Operator, Source, StepWork, check, check_bytes};

/// `code line:column message (help)` of every diagnostic.
fn said(text: &str) -> Vec<String> {
    let source = Source::new("x.yaml", text);
    let checked = check(&source, &Operator::default());
    let lines = checked.diagnostics.iter().map(|found| {
        let at = source.position(found.span);
        let help = found.help.as_ref().map(|help| format!(" ({help})"));
        let (code, message) = (found.code, &found.message);
        format!("{code} {}:{} {message}{}", at.line, at.column, help.unwrap_or_default())
    });
    lines.collect()
}

fn codes(text: &str) -> Vec<DiagnosticCode> {
    let source = Source::new("x.yaml", text);
    let checked = check(&source, &Operator::default());
    checked.diagnostics.iter().map(|found| found.code).collect()
}

#[test]
fn all_problems_of_a_file_are_reported_at_once() {
    let text = "\
mode: mapreduce
retry_buget: 5
map:
  input: items.json
  filter: \"item.a = 3\"
  error_policy:
    retry_config:
      max_attempts: 5
      attempts: 6
      backoff: {fibonacci: {initial: 1 second}}
      jitter_factor: 3
  agent_template:
    - shel: x
    - shell: echo ${itm.name}
      timeout: 500
  max_parallel: 0
";
    assert_eq!(
        said(text),
        [
            "unknown-key 2:1 `retry_buget` is not a key of a workflow (did you mean `retry_budget`?)",
            "bad-expression 5:19 `=` is not an operator (write `==`)",
            "conflict 9:17 `attempts` has two values, 5 and 6",
            "wrong-value 10:38 `1 second` is not a duration (write `1s`)",
            "wrong-value 11:7 `jitter_factor` is 3 (it must be a number from 0 to 1)",
            "unknown-key 13:7 `shel` is not a key of a command (did you mean `shell`?)",
            "unknown-name 14:19 unknown name `itm.name` (the nearest known name is `item`; write `$${` for a literal `${`)",
            "wrong-value 15:16 `500` is not a duration (a number needs a unit: `500ms` or `500s`)",
            "wrong-value 16:17 `max_parallel` cannot be 0 (write at least 1)",
        ]
    );
}

#[test]
fn a_name_is_known_after_the_command_that_captures_it() {
    let good = "- {shell: date, id: now, capture_output: today}\n- shell: echo ${today} ${step.now.output}\n";
    assert_eq!(said(good), [""; 0]);
    let early = "- shell: echo ${today}\n- {shell: date, capture_output: today}\n";
    assert_eq!(
        said(early),
        ["unknown-name 1:15 no earlier command provides `today` (capture it in an earlier command)"]
    );
    let shells_own = "- shell: echo ${HOME} ${f%.txt} $1 ${x:-y}\n";
    assert_eq!(said(shells_own), [""; 0]);
    let in_item_only = "\
mode: mapreduce
map:
  input: a.json
  agent_template: [{shell: date, capture_output: today}, {shell: 'echo ${today} ${item.id}'}]
reduce: [{shell: 'echo ${today} ${map.total}'}]
";
    assert_eq!(
        said(in_item_only),
        [
            "unknown-name 5:24 `today` is available only in the map (use `${map.results}` for the results of the items)"
        ]
    );
    let no_item = codes("- shell: echo ${item.id}\n");
    assert_eq!(no_item, [DiagnosticCode::UnknownName]);
}

#[test]
fn each_kind_of_mistake_has_its_code() {
    for (text, code) in [
        ("", DiagnosticCode::Empty),
        ("- shell: [unclosed\n", DiagnosticCode::Syntax),
        ("just text\n", DiagnosticCode::WrongValue),
        ("- echo hello\n", DiagnosticCode::WrongValue),
        ("- {shell: a, http: {url: 'http://x'}}\n", DiagnosticCode::Conflict),
        ("- {id: a}\n", DiagnosticCode::MissingKey),
        ("- {shell: a, id: x}\n- {shell: b, id: x}\n", DiagnosticCode::DuplicateId),
        ("- {shell: a, shell: b}\n", DiagnosticCode::DuplicateKey),
        ("- {http: {url: ftp://x}}\n", DiagnosticCode::WrongValue),
        ("- {http: {}}\n", DiagnosticCode::MissingKey),
        ("- {shell: a, retry_config: {rules: [{then: hold}]}}\n", DiagnosticCode::NoBreaker),
        ("- {http: {url: 'http://x'}, retry_config: {rules: [{then: hold}]}}\n", DiagnosticCode::NoBreaker),
        ("- {shell: a, breaker: on}\n", DiagnosticCode::WrongValue),
        ("- {shell: a, breaker: {nane: x}}\n", DiagnosticCode::UnknownKey),
        ("- {shell: a, timeout: 2 minutes}\n", DiagnosticCode::WrongValue),
        ("- {shell: a, env: {A: [1]}}\n", DiagnosticCode::WrongValue),
        ("map: {input: a, agent_template: [{shell: a}]}\n", DiagnosticCode::MissingKey),
        ("mode: mapreduce\n", DiagnosticCode::MissingKey),
        ("mode: mapreduce\nmap: {agent_template: [{shell: a}]}\n", DiagnosticCode::MissingKey),
        ("mode: flow\nsteps: []\ngoals: [x]\n", DiagnosticCode::Unreachable),
        ("retry_budget: 5m\ncommands: [{shell: a}]\n", DiagnosticCode::WrongValue),
        ("retry_budget: -1\ncommands: [{shell: a}]\n", DiagnosticCode::WrongValue),
        ("agents: {gpt: [gpt, --ask]}\ncommands: [{gpt: hello}]\n", DiagnosticCode::WrongValue),
        ("secrets: {TOKEN: {}}\ncommands: [{shell: a}]\n", DiagnosticCode::MissingKey),
        ("commands: [{shell: a, capture_output: item}]\n", DiagnosticCode::WrongValue),
    ] {
        assert_eq!(codes(text).first(), Some(&code), "{text}{:?}", said(text));
    }
}

#[test]
fn warnings_are_about_probable_mistakes() {
    for (text, code) in [
        ("- {shell: a, retry_config: {retry_budget: 500ms}}\n", DiagnosticCode::BudgetBelowFirstDelay),
        ("- {shell: a, retry_config: {attempts: unlimited}}\n", DiagnosticCode::UnlimitedRetries),
        ("- {shell: a, retry_config: {jitter_factor: 0.5}}\n", DiagnosticCode::NoEffect),
        (
            "- {shell: a, retry_config: {rules: [{then: stop}, {exit_code: 3, then: retry}]}}\n",
            DiagnosticCode::RuleNeverMatches,
        ),
        (
            "- {shell: a, retry_config: {rules: [{exit_code: 0, then: stop}]}}\n",
            DiagnosticCode::RuleNeverMatches,
        ),
        (
            "- {shell: a, retry_config: {rules: [{status: 503, then: stop}]}}\n",
            DiagnosticCode::RuleNeverMatches,
        ),
        (
            "- {http: {url: 'http://x'}, retry_config: {rules: [{exit_code: 1, then: stop}]}}\n",
            DiagnosticCode::RuleNeverMatches,
        ),
        (
            "deadline: 10s\ncommands: [{shell: a, retry_config: {attempts: 9}}]\n",
            DiagnosticCode::AttemptsPastDeadline,
        ),
        ("retry_budget: 60\ncommands: [{shell: a}]\n", DiagnosticCode::PoolAboveCeiling),
        (
            "mode: mapreduce\nretry_budget: 5\nmap: {input: a, max_items: 100, agent_template: [{shell: a}]}\n",
            DiagnosticCode::PoolBelowItems,
        ),
        (
            "mode: mapreduce\nretry_config: {attempts: 3}\nmap: {input: a, agent_template: [{shell: a}]}\n",
            DiagnosticCode::NoJitter,
        ),
        ("- {shell: a, capture_format: json}\n", DiagnosticCode::NoEffect),
        ("- {http: {url: 'http://x'}, env: {A: b}}\n", DiagnosticCode::NoEffect),
        ("- {http: {url: 'http://x'}, working_dir: /tmp}\n", DiagnosticCode::NoEffect),
        ("- {write_file: {path: a, content: b}, env: {A: b}}\n", DiagnosticCode::NoEffect),
        (
            "mode: mapreduce\nmap: {input: a, agent_template: [{http: {url: 'http://x'}}]}\n",
            DiagnosticCode::MapWithoutBreaker,
        ),
        (
            "mode: flow\ngoals: [a]\nsteps: [{id: a, type: sync, http: {endpoint: 'http://x'}, work_config: {backoff: 5}}]\n",
            DiagnosticCode::NoMaxRetries,
        ),
    ] {
        let source = Source::new("x.yaml", text);
        let checked = check(&source, &Operator::default());
        let found: Vec<_> = checked.diagnostics.iter().map(|found| found.code).collect();
        assert_eq!(found, [code], "{text}");
        assert!(checked.workflow.is_some(), "a warning keeps nothing from running: {text}");
    }
}

#[test]
fn the_closest_block_wins_field_by_field() {
    let text = "\
mode: mapreduce
retry_config: {attempts: 1, initial_delay: 1s, max_delay: 1m, retry_budget: 1h, jitter: true}
error_policy: {retry_config: {attempts: 2, initial_delay: 2s, max_delay: 2m, retry_budget: 2h}}
map:
  input: a.json
  error_policy: {retry_config: {attempts: 3, initial_delay: 3s, max_delay: 3m}}
  timeout_config: {retry_config: {attempts: 4, initial_delay: 4s}}
  agent_template: [{shell: a, retry_config: {attempts: 5}}, {shell: b}]
setup: [{shell: s}]
";
    let checked = check(&Source::new("x.yaml", text), &Operator::default());
    let workflow = checked.workflow.expect("valid");
    let shown = |step: usize, command: usize| {
        let retry = &workflow.steps[step].commands[command].retry;
        let terms = retry.policy.terms();
        let places: Vec<_> = retry.origins().map(|(name, origin)| (name, origin.place.word())).collect();
        let numbers = (
            terms.limits().attempts().retries(),
            terms.pace().initial_delay().as_secs(),
            terms.pace().max_delay().as_secs() / 60,
            terms.limits().retry_budget().map(|budget| budget.as_secs() / 3600),
        );
        (numbers, places)
    };
    let (numbers, places) = shown(1, 0);
    assert_eq!(numbers, (Some(5), 4, 3, Some(2)));
    assert_eq!(
        places,
        [
            ("attempts", "retry_config of the command"),
            ("initial_delay", "map.timeout_config"),
            ("jitter", "retry_config of the workflow"),
            ("max_delay", "map.error_policy"),
            ("retry_budget", "error_policy of the workflow"),
        ]
    );
    assert_eq!(shown(1, 1).0, (Some(4), 4, 3, Some(2)));
    assert_eq!(shown(0, 0).0, (Some(2), 2, 2, Some(2)), "setup is no part of the map");
}

#[test]
fn on_item_failure_retry_means_the_default_policy_if_no_block_says_how() {
    let with = |policy: &str| {
        let text = format!(
            "mode: mapreduce\nmap: {{input: a, error_policy: {policy}, agent_template: [{{shell: a}}]}}\n"
        );
        let checked = check(&Source::new("x.yaml", &text), &Operator::default());
        let workflow = checked.workflow.expect("valid");
        workflow.steps[0].commands[0].retry.policy.terms().limits().attempts().retries()
    };
    assert_eq!(with("{on_item_failure: retry}"), Some(3));
    assert_eq!(with("{on_item_failure: dlq}"), Some(0));
    assert_eq!(with("{on_item_failure: retry, retry_config: {attempts: 7}}"), Some(7));
}

#[test]
fn a_flow_is_planned_backwards_from_its_goals() {
    let step = |id: &str, takes: &str, gives: &str| {
        format!(
            "  - {{id: {id}, type: sync, http: {{endpoint: 'http://x/{id}'}}, attributes: {{{takes}: {{role: required}}, {gives}: {{role: output}}}}}}\n"
        )
    };
    let flow = |steps: &[String], rest: &str| format!("mode: flow\n{rest}\nsteps:\n{}", steps.concat());
    let steps = [step("c", "y", "z"), step("a", "start", "x"), step("b", "x", "y"), step("other", "q", "r")];
    let text = flow(&steps, "goals: [c]\ninit: {start: 1}");
    let checked = check(&Source::new("x.yaml", &text), &Operator::default());
    let plan = checked.workflow.expect("valid").flow.expect("a flow").plan;
    assert_eq!(plan, [1, 2, 0], "a, b, c; `other` leads nowhere");

    let missing = flow(&steps, "goals: [c]");
    assert_eq!(
        said(&missing),
        [
            "unreachable 5:5 step `a` needs `start`, which no step provides (set `start` in `init`, or add it as an output of a step)"
        ]
    );
    let circle = flow(&[step("a", "y", "x"), step("b", "x", "y")], "goals: [a]");
    assert_eq!(said(&circle), ["cycle 4:5 these steps wait for each other: a → b → a"]);
    let script = "mode: flow\ngoals: [a]\nsteps: [{id: a, type: script}]\n";
    assert_eq!(codes(script)[0], DiagnosticCode::Unsupported);
    let lua = "mode: flow\ngoals: [a]\nsteps: [{id: a, type: sync, memoizable: true, http: {endpoint: 'http://x'}, predicate: {language: lua, script: x}}]\n";
    assert_eq!(codes(lua), [DiagnosticCode::Unsupported, DiagnosticCode::Unsupported]);
}

#[test]
fn the_mark_is_under_the_wrong_part_even_if_the_same_text_occurs_before() {
    let twice =
        "mode: mapreduce\nmap:\n  input: a\n  filter: \"a && a & a\"\n  agent_template: [{shell: x}]\n";
    assert!(said(twice)[0].starts_with("bad-expression 4:19"), "{:?}", said(twice));
    let block = "- shell: |\n    # not ${itm.x}\n    echo ${itm.x}\n";
    assert!(said(block)[0].starts_with("unknown-name 3:10"), "{:?}", said(block));
}

#[test]
fn one_problem_hides_no_other() {
    let flow = "mode: flow\ngoals: [a, nope]\nsteps:\n  - {id: a, type: sync, http: {endpoint: 'http://x'}, attributes: {q: {role: required}, r: {role: required}}}\n";
    assert_eq!(codes(flow), [DiagnosticCode::Unreachable; 3]);
    let work = "mode: flow\ngoals: [a]\nsteps:\n  - {id: a, type: sync, http: {endpoint: 'http://x'}, work_config: {max_retries: -2, backoff: -1, max_backoff: -4, backoff_type: cubic}}\n";
    assert_eq!(codes(work), [DiagnosticCode::WrongValue; 4]);
    let mode = "mode: mapreduc\nmap: {agent_template: [{shel: x}]}\n";
    assert_eq!(
        codes(mode),
        [DiagnosticCode::WrongValue, DiagnosticCode::MissingKey, DiagnosticCode::UnknownKey]
    );
}

#[test]
fn a_handler_sees_the_failed_output_and_its_captures_are_discarded() {
    let sees = "- {shell: make, id: build, on_failure: {claude: 'fix ${step.build.output}'}}\n";
    assert_eq!(said(sees), [""; 0]);
    let leaves = "- {shell: a, on_failure: {shell: b, capture_output: why}}\n- {shell: 'echo ${why}'}\n";
    assert_eq!(codes(leaves), [DiagnosticCode::UnknownName]);
    let named = "- {shell: a, on_failure: {shell: b}}\n- {shell: c}\n";
    let checked = check(&Source::new("x.yaml", named), &Operator::default());
    let steps = checked.workflow.expect("valid").steps;
    let ids: Vec<_> = steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(ids, ["shell-1", "shell-2"]);
}

#[test]
fn settings_that_cannot_be_obeyed_are_refused() {
    for (text, code) in [
        ("mode: flow\ngoals: [a]\nsteps: [{id: a, type: flow, flow: {goals: [a]}}]\n", DiagnosticCode::Cycle),
        (
            "mode: flow\ngoals: [a]\nsteps: [{id: a, type: sync, http: {endpoint: 'http://${env.H}/x'}}]\n",
            DiagnosticCode::WrongValue,
        ),
        (
            "mode: flow\ngoals: [a]\nretry_config: {attempts: 3}\nsteps: [{id: a, type: sync, http: {endpoint: 'http://x'}}]\n",
            DiagnosticCode::UnknownKey,
        ),
        (
            "- {shell: a, breaker: {name: x, failure_threshold: 3}}\n- {shell: b, breaker: {name: x, failure_threshold: 4}}\n",
            DiagnosticCode::Conflict,
        ),
        ("- {shell: ''}\n", DiagnosticCode::WrongValue),
        ("- {http: {url: 'http://x', expect: []}}\n", DiagnosticCode::WrongValue),
        ("- {shell: a, timeout: 0s}\n", DiagnosticCode::WrongValue),
        ("- {shell: a, env: {A-B: x}}\n", DiagnosticCode::WrongValue),
        ("env: {A: x}\nsecrets: {A: {env: B}}\ncommands: [{shell: a}]\n", DiagnosticCode::Conflict),
        (
            "mode: mapreduce\nmap: {input: a, error_policy: {continue_on_failure: false, max_failures: 5}, agent_template: [{shell: a}]}\n",
            DiagnosticCode::Conflict,
        ),
    ] {
        assert_eq!(codes(text), [code], "{text}{:?}", said(text));
    }
}

#[test]
fn a_closer_block_overrides_the_error_policy_of_an_outer_one() {
    let with = |outer: &str, inner: &str| {
        let text = format!(
            "mode: mapreduce\n{outer}\nmap: {{input: a, error_policy: {{{inner}}}, agent_template: [{{shell: a}}]}}\n"
        );
        let checked = check(&Source::new("x.yaml", text), &Operator::default());
        let workflow = checked.workflow.expect("valid");
        let retries = workflow.steps[0].commands[0].retry.policy.terms().limits().attempts().retries();
        match &workflow.steps[0].work {
            StepWork::Map(map) => (map.tolerance.max_failures, retries),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(with("continue_on_failure: false", ""), (Some(1), Some(0)));
    assert_eq!(with("continue_on_failure: false", "continue_on_failure: true"), (None, Some(0)));
    assert_eq!(with("continue_on_failure: false", "max_failures: 5"), (Some(5), Some(0)));
    assert_eq!(with("on_item_failure: stop", "on_item_failure: dlq"), (None, Some(0)));
    assert_eq!(with("on_item_failure: retry", "on_item_failure: skip"), (None, Some(0)));
    assert_eq!(with("on_item_failure: retry", ""), (None, Some(3)));
}

#[test]
fn a_file_has_a_bounded_number_of_rules() {
    let rules = "{exit_code: 3, then: stop}, ".repeat(2001);
    let text = format!("- {{shell: a, retry_config: {{rules: [{rules}]}}}}\n");
    assert_eq!(codes(&text), [DiagnosticCode::TooLarge]);
}

#[test]
fn anchors_without_aliases_are_bounded_too() {
    let open: Vec<_> = (0..90).map(|n| format!("&a{n} [")).collect();
    let text = format!("{}{}{}\n", open.concat(), "1,".repeat(5_000), "]".repeat(90));
    assert_eq!(codes(&text), [DiagnosticCode::TooLarge]);
}

#[test]
fn a_file_that_is_not_utf8_is_refused_with_its_position() {
    let (source, checked) = check_bytes("x", b"- shell: a\n- \xff\xfe".to_vec(), &Operator::default());
    let at = source.position(checked.diagnostics[0].span);
    assert_eq!((at.line, at.column), (2, 3));
    assert!(checked.has_errors());
}

#[test]
fn crlf_and_a_byte_order_mark_change_nothing() {
    assert_eq!(said("\u{feff}- shell: echo a\r\n  timeout: 5s\r\n"), [""; 0]);
}
