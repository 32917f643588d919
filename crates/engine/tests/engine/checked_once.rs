//! The checked workflow is kept with the job: a process checks no text twice, and a plan that was not checked
//! again equals the one that checking would return.

use std::sync::Arc;

use serde_json::{Value, json};
use undaunted_engine::decide::react;
use undaunted_engine::event::{Event, FlowRun, JobEvent, Record, WorkflowText};
use undaunted_engine::input::Input;
use undaunted_engine::job::{Job, Plans};
use undaunted_engine::plan::Plan;
use undaunted_engine::task::TaskWork;
use undaunted_engine::workflow::{
    FlowGoals, Operator, PoolRequest, Source, Workflow, assemble, check_aimed, check_step, checks_made,
};

use crate::fixture::{T0, TestedJob, item_at, submitted};

fn said(plan: &Plan) -> String {
    format!("{plan:#?}")
}

/// A workflow in debug notation, without the spans of its text.
fn without_spans(workflow: &Workflow) -> String {
    let words = format!("{workflow:#?}");
    let lines = words.lines().filter(|line| {
        let line = line.trim();
        !line.starts_with("start: ") && !line.starts_with("end: ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn stored(record: &Record) -> Record {
    Record::decode(&record.encode()).unwrap()
}

fn submitted_as(submitted: undaunted_engine::event::JobSubmitted) -> Record {
    let event = Event::Job(JobEvent::Submitted(Box::new(submitted)));
    Record { at: T0, event }
}

#[test]
fn a_workflow_is_checked_once_and_its_stored_text_once_for_all_jobs_that_share_it() {
    let before = checks_made();
    let record = submitted("job", "- shell: a\n", 1, &Operator::default());
    assert_eq!(checks_made() - before, 1);
    let job = Job::begin(&record).unwrap();
    assert_eq!(checks_made() - before, 1);
    let (record, plans) = (stored(&record), Plans::default());
    for _ in 0..3 {
        let again = Job::begin_with_plans(&record, &plans).unwrap();
        assert_eq!(said(again.plan()), said(job.plan()));
        assert_eq!(checks_made() - before, 2);
        let saved = Job::restore(&again.save(), &plans).unwrap();
        assert_eq!(said(saved.plan()), said(job.plan()));
    }
    assert_eq!(checks_made() - before, 2);
}

#[test]
fn every_example_has_the_same_plan_when_loaded_from_its_journal() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|it| it != "yaml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let operator = Operator { breaker_per_origin: seen % 2 == 0, ..Operator::default() };
        let record = submitted("job", &text, 1, &operator);
        let live = Job::begin(&record).unwrap();
        let loaded = Job::begin(&stored(&record)).unwrap();
        assert_eq!(said(live.plan()), said(loaded.plan()), "{path:?}");
        seen += 1;
    }
    assert!(seen > 10);
}

#[test]
fn an_update_carries_its_plan_and_a_replayed_one_is_checked() {
    let mut test = TestedJob::of("- {shell: a, retry_config: {attempts: 3}}\n");
    let text = "- {shell: a, retry_config: {attempts: 1}}\n";
    let workflow = test.job.check(text).workflow.unwrap();
    let update =
        Input::Update { text: WorkflowText::checked(text, Plan::new(workflow)), changes: Vec::new() };
    let (before, mut job) = (checks_made(), test.job.clone());
    assert_eq!(react(&mut job, &update, test.now).records.len(), 1);
    assert_eq!(checks_made(), before);
    assert_eq!(&*job.submitted().text, text);
    test.feed(&update);
    assert_eq!(said(test.replayed().plan()), said(job.plan()));
    assert!(checks_made() > before);
}

/// Steps of all kinds, as they are registered.
fn steps() -> Vec<Value> {
    let out = |name: &str| json!({ name: {"role": "output"} });
    vec![
        json!({
            "id": "a", "type": "sync", "http": {"endpoint": "http://x/a", "timeout": 5},
            "attributes": out("p"), "breaker": {"name": "b", "failure_threshold": 3},
        }),
        json!({
            "id": "b", "type": "async",
            "http": {"endpoint": "http://x/b", "completion_timeout": 9},
            "attributes": {
                "p": {"role": "required", "for_each": true, "mapping": {"name": "x"}},
                "q": {"role": "output"},
                "k": {"role": "const", "default": "1"},
            },
            "best_effort": true, "best_effort_min_dcs": 2, "on_complete": "leave",
            "work_config": {"max_retries": 3, "backoff": 7, "parallelism": 4},
            "breaker": {"name": "b", "failure_threshold": 3},
        }),
        json!({
            "id": "c", "type": "flow", "flow": {"goals": ["d"]}, "labels": {"of": "c"},
            "predicate": {"language": "cel", "script": "q > 1"},
            "attributes": {"q": {"role": "optional"}, "r": {"role": "output"}},
        }),
        json!({
            "id": "d", "type": "sync", "http": {"endpoint": "http://x/d"}, "attributes": out("r"),
        }),
    ]
}

fn aim(goal: &str) -> FlowGoals {
    let init = [("z".to_owned(), Value::from(1))];
    FlowGoals { goals: vec![goal.to_owned()], init: init.into() }
}

fn assembled(steps: &[Value], pool: Option<PoolRequest>, aim: &FlowGoals) -> Result<Workflow, Vec<String>> {
    let checked = steps.iter().map(|step| {
        let source = Source::new("step", step.to_string());
        let (id, step) = check_step(&source, &Operator::default()).unwrap();
        (id, Arc::new(step))
    });
    assemble(checked, pool, aim)
}

#[test]
fn an_assembled_flow_equals_the_flow_checked_from_its_text() {
    let steps = steps();
    for (goal, pool) in [("c", false), ("b", true), ("d", false)] {
        let mut text = json!({"mode": "flow", "steps": steps});
        if pool {
            text["retry_budget_per_workflow"] = 5.into();
        }
        let pool = pool.then(|| PoolRequest { per_item: 5, ..PoolRequest::default() });
        let source = Source::new("flow", text.to_string());
        let read = check_aimed(&source, &Operator::default(), Some(&aim(goal)));
        let mut read = read.workflow.unwrap();
        read.flow.as_mut().unwrap().init.clear();
        let made = assembled(&steps, pool, &aim(goal)).unwrap();
        assert_eq!(without_spans(&made), without_spans(&read));
    }
}

#[test]
fn assembling_a_flow_reports_conflicts_between_its_steps() {
    let mut others = steps();
    others[1]["breaker"]["failure_threshold"] = 4.into();
    let why = assembled(&others, None, &aim("b")).unwrap_err();
    assert_eq!(why, ["the breaker `b` is defined twice with different settings"]);
    let mut missing = steps();
    missing.remove(0);
    let why = assembled(&missing, None, &aim("b")).unwrap_err();
    let said = "step `b` needs `p`, which no step provides \
                (set `p` in `init`, or add it as an output of a step)";
    assert_eq!(why, [said]);
}

#[test]
fn a_flow_inside_a_flow_is_planned_from_the_steps_of_the_outer_one() {
    let text = json!({"mode": "flow", "goals": ["c"], "steps": steps().split_off(2)});
    let mut test = TestedJob::of(&text.to_string());
    let TaskWork::Flow(flow) = test.task(item_at(0)).work else {
        panic!("it is no flow");
    };
    let (before, plans) = (checks_made(), Plans::default());
    let inner = submitted_as(flow.submission(&test.job, &plans).unwrap());
    let live = Job::begin_with_plans(&inner, &plans).unwrap();
    assert_eq!(checks_made(), before);
    let loaded = Job::begin(&stored(&inner)).unwrap();
    assert_eq!(checks_made(), before + 1);
    assert_eq!(said(live.plan()), said(loaded.plan()));
    assert_eq!(live.workflow().flow.as_ref().unwrap().goals, ["d"]);

    // An inner flow that cannot be planned is refused for the same reason.
    let mut nowhere = (*flow).clone();
    nowhere.run = FlowRun { goals: vec!["nowhere".to_owned()], ..nowhere.run };
    let refused = nowhere.submission(&test.job, &plans).unwrap_err();
    let record = undaunted_engine::event::JobSubmitted {
        text: text.to_string().into(),
        flow: Some(nowhere.run.clone()),
        ..test.job.submitted().clone()
    };
    let stored = Job::begin(&submitted_as(record)).unwrap_err();
    assert_eq!(refused, stored);
    test.start();
}
