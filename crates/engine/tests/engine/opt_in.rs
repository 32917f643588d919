//! Breakers are opt-in: which commands have one, its name, and jobs that were stored before.

use undaunted_engine::event::{Event, JobEvent, Record};
use undaunted_engine::id::CommandId;
use undaunted_engine::update::{WorkflowUpdate, compare};
use undaunted_engine::workflow::{CommandBreaker, DiagnosticCode, Operator, Source, Workflow, check};
use undaunted_policy::{BreakerSettings, FailureCause};

use crate::fixture::{TestedJob, golden, secs};

const PER_ORIGIN: fn() -> Operator = || Operator { breaker_per_origin: true, ..Operator::default() };

fn workflow(file: &str, text: &str, operator: &Operator) -> Workflow {
    let checked = check(&Source::new(file, text), operator);
    let found = checked.diagnostics;
    checked.workflow.unwrap_or_else(|| panic!("{found:?}\n{text}"))
}

/// The breaker of the first command.
fn breaker_in(file: &str, text: &str) -> Option<CommandBreaker> {
    let workflow = workflow(file, text, &Operator::default());
    workflow.steps[0].commands[0].breaker.as_deref().cloned()
}

fn breaker(text: &str) -> Option<CommandBreaker> {
    breaker_in("/w/nightly.yaml", text)
}

fn name_in(file: &str, text: &str) -> String {
    let name = breaker_in(file, text).unwrap().name;
    name.unwrap()
}

fn codes(text: &str, operator: &Operator) -> Vec<DiagnosticCode> {
    let checked = check(&Source::new("w.yaml", text), operator);
    checked.diagnostics.iter().map(|found| found.code).collect()
}

fn flow_with(step: &str) -> String {
    format!("mode: flow\ngoals: [a]\nsteps:\n  - {{id: a, {step}}}\n")
}

#[test]
fn a_command_or_a_step_has_no_breaker_by_default() {
    let step = flow_with("type: sync, http: {endpoint: 'http://s/a'}");
    let refusing = flow_with("type: sync, http: {endpoint: 'http://s/a'}, breaker: false");
    for text in [
        "- shell: a\n",
        "- shell: a\n  breaker: false\n",
        "- http: {url: 'http://x/'}\n",
        "- {http: {url: 'http://x/'}, breaker: false}\n",
        &step,
        &refusing,
    ] {
        assert_eq!(breaker(text), None, "{text}");
        assert_eq!(codes(text, &Operator::default()), [], "{text}");
    }
}

#[test]
fn breaker_true_is_a_breaker_with_the_default_settings() {
    for text in [
        "- {http: {url: 'http://x/'}, breaker: true}\n",
        "- {http: {url: 'http://x/'}, breaker: {}}\n",
        &flow_with("type: async, http: {endpoint: 'http://s/a'}, breaker: true"),
    ] {
        let found = breaker(text);
        assert_eq!(found, Some(CommandBreaker::default()), "that of its origin: {text}");
    }
    for text in ["- {shell: a, breaker: true}\n", "- {shell: a, breaker: {}}\n"] {
        let found = breaker(text).unwrap();
        assert_eq!(found.settings, BreakerSettings::DEFAULT, "{text}");
    }
}

#[test]
fn a_command_that_is_no_request_has_a_breaker_named_after_workflow_and_command() {
    let named = "name: payments\ncommands: [{shell: a, id: charge, breaker: true}]\n";
    assert_eq!(name_in("w.yaml", named), "payments/charge");
    let settings = "name: payments\ncommands: [{claude: hi, breaker: {failure_threshold: 2}}]\n";
    let found = breaker(settings).unwrap();
    assert_eq!(found.name.as_deref(), Some("payments/claude-1"));
    assert_eq!(found.settings.failure_threshold, 2);
    let own = "- {shell: a, breaker: {name: shared}}\n";
    assert_eq!(name_in("w.yaml", own), "shared");
    let map = "
name: nightly
mode: mapreduce
map:
  input: a.json
  agent_template: [{shell: a, id: fetch, breaker: true, on_success: {shell: b, id: tell, breaker: true}}]
";
    let command = &workflow("w.yaml", map, &Operator::default()).steps[0].commands[0];
    let inner = &command.on_success[0];
    let called = [command, inner].map(|it| it.breaker.as_ref().unwrap().name.clone().unwrap());
    assert_eq!(called, ["nightly/fetch", "nightly/tell"]);
}

#[test]
fn a_breaker_of_an_unnamed_workflow_is_named_after_the_file() {
    let text = "- {shell: a, breaker: true}\n";
    for (file, name) in [
        ("nightly.yaml", "nightly/shell-1"),
        ("/w/nightly.v2.yml", "nightly.v2/shell-1"),
        ("some job.yaml", "some-job/shell-1"),
        ("orders-7.3", "orders-7.3/shell-1"),
        ("standard input", "standard-input/shell-1"),
        ("-", "standard-input/shell-1"),
        ("", "standard-input/shell-1"),
    ] {
        assert_eq!(name_in(file, text), name, "{file}");
    }
    let empty = "name: ' '\ncommands: [{shell: a, breaker: true}]\n";
    assert_eq!(name_in("nightly.yaml", empty), "nightly/shell-1");
}

#[test]
fn any_name_of_a_workflow_makes_a_valid_breaker_name() {
    let long = "n".repeat(500);
    let cases = [
        ("http://host", "http:--host/a"),
        ("a\\tb\\0c\\nd", "a-b-c-d/a"),
        ("Nächtlicher Lauf №7", "Nächtlicher-Lauf-№7/a"),
        (long.as_str(), ""),
    ];
    for (workflow, expected) in cases {
        let text = format!("name: \"{workflow}\"\ncommands: [{{shell: a, id: a, breaker: true}}]\n");
        let name = name_in("w.yaml", &text);
        assert_eq!(name, name_in("w.yaml", &text), "always the same");
        assert!(expected.is_empty() || name == expected, "{name}");
        assert!(name.len() < 120 && !name.contains(|c: char| c.is_control() || c == ' '));
        assert_eq!(name.matches('/').count(), 1, "neither a given name nor an origin");
    }
}

#[test]
fn an_operator_may_give_every_origin_a_breaker_and_breaker_false_takes_it_back() {
    let of = |text: &str| {
        let workflow = workflow("w.yaml", text, &PER_ORIGIN());
        workflow.steps[0].commands[0].breaker.as_deref().cloned()
    };
    let http = "type: sync, http: {endpoint: 'http://s/a'}";
    assert_eq!(of(&flow_with(http)), Some(CommandBreaker::default()));
    assert_eq!(of(&flow_with(&format!("{http}, breaker: false"))), None);
    assert_eq!(of("- http: {url: 'http://x/'}\n"), Some(CommandBreaker::default()));
    assert_eq!(of("- {http: {url: 'http://x/'}, breaker: false}\n"), None);
    assert_eq!(of("- shell: a\n"), None);
}

#[test]
fn a_rule_that_holds_needs_a_breaker_whatever_the_command_does() {
    let rules = "retry_config: {rules: [{then: hold}]}";
    for (command, breaker, expected) in [
        ("shell: a", "", Some(DiagnosticCode::NoBreaker)),
        ("shell: a", ", breaker: false", Some(DiagnosticCode::NoBreaker)),
        ("shell: a", ", breaker: true", None),
        ("http: {url: 'http://x/'}", "", Some(DiagnosticCode::NoBreaker)),
        ("http: {url: 'http://x/'}", ", breaker: false", Some(DiagnosticCode::NoBreaker)),
        ("http: {url: 'http://x/'}", ", breaker: true", None),
        ("http: {url: 'http://x/'}", ", breaker: 7", Some(DiagnosticCode::WrongValue)),
    ] {
        let text = format!("- {{{command}, {rules}{breaker}}}\n");
        let expected: Vec<DiagnosticCode> = expected.into_iter().collect();
        assert_eq!(codes(&text, &Operator::default()), expected, "{text}");
    }
    let request = format!("- {{http: {{url: 'http://x/'}}, {rules}}}\n");
    assert_eq!(codes(&request, &PER_ORIGIN()), []);
}

#[test]
fn a_breaker_is_recommended_for_a_map_of_requests_unless_one_is_given_or_declined() {
    let map =
        |command: &str| format!("mode: mapreduce\nmap: {{input: a.json, agent_template: [{{{command}}}]}}\n");
    let http = "http: {url: 'http://x/${item}'}";
    let warned = [DiagnosticCode::MapWithoutBreaker];
    for (command, expected) in [
        (http.to_owned(), &warned[..]),
        (format!("shell: a, on_success: {{{http}}}"), &warned),
        (format!("{http}, breaker: true"), &[]),
        (format!("{http}, breaker: {{name: x}}"), &[]),
        (format!("{http}, breaker: false"), &[]),
        // A handler cannot have one.
        (format!("shell: a, on_failure: {{{http}}}"), &[]),
        ("shell: curl http://x/".to_owned(), &[]),
    ] {
        let text = map(&command);
        assert_eq!(codes(&text, &Operator::default()), expected, "{text}");
    }
    assert_eq!(codes(&map(http), &PER_ORIGIN()), []);
    assert_eq!(codes("- http: {url: 'http://x/'}\n", &Operator::default()), []);
}

#[test]
fn a_breaker_on_a_step_that_is_a_flow_has_no_effect() {
    let text = "
mode: flow
goals: [a]
steps:
  - {id: a, type: flow, flow: {goals: [b]}, breaker: true}
  - {id: b, type: sync, http: {endpoint: 'http://s/b'}}
";
    assert_eq!(codes(text, &Operator::default()), [DiagnosticCode::NoEffect]);
    let quiet = text.replace("breaker: true", "breaker: false");
    assert_eq!(codes(&quiet, &PER_ORIGIN()), []);
}

/// Runs a job whose only request always fails, and returns its records.
fn outage(mut test: TestedJob) -> (Vec<String>, TestedJob) {
    let mut all = Vec::new();
    for _ in 0..100 {
        if test.job.stage.has_ended() {
            return (all, test);
        }
        all.extend(test.start().lines());
        if test.job.starts.running.is_empty() {
            test.advance();
        } else {
            all.extend(test.fail(0, FailureCause::Status(503)).lines());
        }
    }
    (all, test)
}

#[test]
fn without_a_breaker_a_request_to_a_dead_origin_waits_exactly_as_its_policy_says() {
    let text = "- {http: {url: 'http://pay.test/'}, retry_config: {attempts: 7, backoff: fixed, initial_delay: 1s}}\n";
    let (all, test) = outage(TestedJob::of(text));
    let count = |word: &str| all.iter().filter(|it| it.starts_with(word)).count();
    assert_eq!(count("attempt_started"), 8, "{all:#?}");
    assert_eq!(count("held"), 0, "{all:#?}");
    assert_eq!(test.report().delay_ms.0, secs(7));
    assert_eq!(test.now, crate::fixture::at(7), "not a moment longer");
    assert_eq!(test.job.breakers().len(), 0);
}

#[test]
fn a_job_stored_before_breakers_were_opt_in_keeps_those_of_its_origins() {
    let stored = |name| TestedJob::submitted(&Record::decode(&golden(name)).unwrap());
    let mut before = stored("job_submitted_http");
    let command = before.job.plan().command(CommandId(0)).unwrap();
    assert_eq!(command.breaker.as_deref(), Some(&CommandBreaker::default()));
    before.crash_and_resume();
    let (all, before) = outage(before);
    let held = all.iter().position(|it| it.starts_with("held"));
    let started = all.iter().take(held.unwrap());
    let started = started.filter(|it| it.starts_with("attempt_started"));
    assert_eq!(started.count(), 5, "the fifth failure opens it: {all:#?}");
    assert_eq!(before.breaker("http://pay.test").word(), "open");
    let mut since = stored("job_submitted_opt_in");
    assert_eq!(since.job.plan().command(CommandId(0)).unwrap().breaker, None);
    since.crash_and_resume();
    let (all, _) = outage(since);
    assert!(!all.iter().any(|it| it.starts_with("held")), "{all:#?}");
}

#[test]
fn the_operators_choice_of_origin_breakers_is_stored_with_the_job() {
    let text = "- http: {url: 'http://x/'}\n";
    for operator in [Operator::default(), PER_ORIGIN()] {
        let test = TestedJob::with(text, 7, &operator);
        let kept = test.job.submitted().origin_breakers;
        assert_eq!(kept, Some(operator.breaker_per_origin));
        let breaker = test.job.plan().command(CommandId(0)).unwrap().breaker.is_some();
        assert_eq!(breaker, operator.breaker_per_origin);
    }
}

#[test]
fn plans_are_not_shared_by_jobs_whose_origins_have_breakers_and_those_whose_have_none() {
    let plans = undaunted_engine::job::Plans::default();
    let mut found = Vec::new();
    for name in ["job_submitted_http", "job_submitted_opt_in", "job_submitted_http"] {
        let test = TestedJob::submitted(&Record::decode(&golden(name)).unwrap());
        let job = undaunted_engine::job::Job::restore(&test.job.save(), &plans).unwrap();
        found.push(job.plan().command(CommandId(0)).unwrap().breaker.is_some());
    }
    assert_eq!(found, [true, false, true]);
}

#[test]
fn an_update_is_checked_with_the_options_of_the_submission() {
    let text = "- {http: {url: 'http://x/'}, retry_config: {attempts: 3}}\n";
    let newer = text.replace("attempts: 3", "attempts: 5");
    let asking = newer.replace("{http", "{breaker: true, http");
    for (operator, may_ask) in [(Operator::default(), false), (PER_ORIGIN(), true)] {
        let job = TestedJob::with(text, 7, &operator).job;
        let update = |text: &str| {
            let workflow = job.check(text).workflow.unwrap();
            matches!(compare(job.workflow(), &workflow), WorkflowUpdate::Settings(_))
        };
        assert!(update(&newer));
        assert_eq!(update(&asking), may_ask, "the breaker is not new to it");
    }
    // The breaker keeps its name wherever the new text comes from.
    let own = "- {shell: a, breaker: true}\n";
    let job = TestedJob::of(own).job;
    let workflow = job.check(own).workflow.unwrap();
    assert_eq!(job.breaker_of(CommandId(0)), Some("w/shell-1"));
    assert_eq!(compare(job.workflow(), &workflow), WorkflowUpdate::Settings(Vec::new()));
}

#[test]
fn golden_submissions_differ_only_in_the_later_field() {
    let decoded = ["job_submitted_http", "job_submitted_opt_in"].map(|name| {
        let record = Record::decode(&golden(name)).unwrap();
        let Event::Job(JobEvent::Submitted(mut submitted)) = record.event else {
            panic!("{name} is no submission");
        };
        (submitted.origin_breakers.take(), submitted)
    });
    let [(before, one), (since, other)] = decoded;
    assert_eq!((before, since), (None, Some(false)));
    assert_eq!(one, other);
}
