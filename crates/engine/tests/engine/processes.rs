//! Jobs of several processes that share breakers. In any order of starts, ends, crashes and reads, no process
//! starts an item that it knows to be held, at most one probe runs, every result is one fact, no append is
//! refused, and all jobs end once every attempt succeeds.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use undaunted_engine::input::Input;
use undaunted_policy::{CircuitState, FailureCause};

use crate::fixture::{EXIT_1, ProcessModel, at, item_at, secs};

const NAME: &str = "payments";

/// Two jobs of three items, which run two at a time, each in a process of its own.
fn two() -> ProcessModel {
    let text = "
mode: mapreduce
map:
  input: a
  max_parallel: 2
  agent_template:
    - {shell: a, retry_config: {attempts: 4, backoff: fixed}, breaker: {name: payments, failure_threshold: 2}}
";
    ProcessModel::of(&[(text.to_owned(), 3), (text.to_owned(), 3)], 2)
}

fn running(model: &ProcessModel) -> [usize; 2] {
    [0, 1].map(|which: usize| model.jobs[which].job.starts.running.len())
}

/// The state of the breaker in the store.
fn word(model: &ProcessModel) -> &'static str {
    model.breakers.fold(NAME).state.word()
}

#[test]
fn a_start_that_another_process_would_have_held_stands_but_its_result_is_ignored() {
    let mut model = two();
    model.start_and_flush(0);
    model.start(1);
    model.fail(0, 2);
    model.flush(0);
    assert_eq!(word(&model), "open");
    // The second process has not read the opening; its starts are accepted.
    model.flush(1);
    assert_eq!(running(&model), [0, 2]);
    assert_eq!(model.jobs[1].begun.len(), 2);
    let open = model.breakers.fold(NAME).state;
    model.end(1, 0, None);
    model.fail(1, 1);
    model.flush(1);
    assert_eq!(model.breakers.fold(NAME).state, open, "from before the opening");
    assert_eq!(model.admission(1).get(NAME), Some(&open), "it had to read the journal");
    model.start(1);
    assert_eq!(running(&model), [0, 0]);
    model.finish();
}

#[test]
fn results_of_two_processes_count_together_in_journal_order() {
    let mut model = two();
    for which in [0, 1] {
        model.start_and_flush(which);
    }
    // Each process has seen one failure; together they are two in a row.
    model.fail(0, 1);
    model.fail(1, 1);
    assert_eq!(model.admission(0).get(NAME).unwrap().failures(), 1);
    assert_eq!(model.admission(1).get(NAME).unwrap().failures(), 1);
    model.flush(0);
    assert_eq!(word(&model), "closed");
    model.flush(1);
    assert_eq!(word(&model), "open");
    assert_eq!(model.admission(0).get(NAME).unwrap().word(), "closed");
    assert_eq!(model.admission(1).get(NAME).unwrap().word(), "open");
    model.refresh_all(0);
    assert_eq!(model.admission(0).get(NAME).unwrap().word(), "open");
    let changes = model.breakers.fold(NAME).changes;
    let opened = changes.iter().filter(|(_, it)| it.change.is_transition());
    let opened: Vec<_> = opened.map(|(_, it)| (it.job.as_deref(), it.failures)).collect();
    assert_eq!(opened, [(Some("job01"), 2)], "recorded once, with the breaker");
    model.finish();
}

#[test]
fn of_two_processes_the_one_with_the_claim_probes() {
    let mut model = two();
    for which in [0, 1] {
        model.start_and_flush(which);
        model.end(which, 0, None);
        model.flush(which);
    }
    model.by_hand(true);
    for which in [0, 1] {
        model.refresh_all(which);
        model.start(which);
        model.end(which, 0, None);
        model.start_and_flush(which);
    }
    model.now = at(60);
    for which in [1, 0] {
        model.start_and_flush(which);
    }
    assert_eq!(running(&model), [0, 1]);
    let probe = model.breakers.fold(NAME).state.probe;
    assert_eq!(probe.unwrap().job, "job01");
    // The first process learns that the claim is free, and probes next.
    model.end(1, 0, None);
    model.flush(1);
    model.crash(1);
    model.refresh_all(0);
    let awakened = model.processes[0].admission.take_jobs_to_wake();
    assert!(awakened.contains("job00"));
    model.start_and_flush(0);
    assert_eq!(running(&model), [1, 0]);
    model.finish();
}

#[test]
fn a_process_applies_its_own_results_before_they_are_committed() {
    let mut model = two();
    model.start_and_flush(0);
    model.fail(0, 2);
    model.start(0);
    assert_eq!(running(&model), [0, 0]);
    assert_eq!(model.jobs[0].job.held_by(NAME), 1, "the third item");
    assert_eq!(word(&model), "closed", "nothing is on the disk");
    model.crash(0);
    model.resume_in(0, 0);
    assert_eq!(running(&model), [2, 0], "they run again");
    assert_eq!(model.admission(0).get(NAME).unwrap().word(), "closed");
    model.finish();
}

#[test]
fn an_overdue_probe_of_a_dead_process_is_given_up_and_no_longer_counts() {
    let mut model = two();
    for which in [0, 1] {
        model.start_and_flush(which);
    }
    model.fail(0, 2);
    model.flush(0);
    model.refresh_all(1);
    for _ in 0..2 {
        model.fail(1, 1);
    }
    model.now = at(60);
    model.start_and_flush(0);
    assert_eq!(running(&model), [1, 0]);
    model.crash(0);
    model.refresh_all(1);
    model.start(1);
    assert_eq!(running(&model), [1, 0], "it may be at work still");
    model.now = at(119);
    model.give_up_probes(1);
    model.start(1);
    assert_eq!(running(&model), [1, 0], "it is not overdue");
    model.now = at(120);
    model.give_up_probes(1);
    model.start_and_flush(1);
    assert_eq!(running(&model), [1, 1], "two run, one counts");
    model.resume_in(0, 0);
    model.fail(0, 1);
    model.flush(0);
    let phase = model.breakers.fold(NAME).state.breaker.circuit();
    let (successes, probing) = (0, true);
    assert_eq!(phase, CircuitState::HalfOpen { successes, probing });
    model.finish();
}

#[test]
fn a_long_outage_costs_all_jobs_of_a_process_equally_many_attempts() {
    // Twenty jobs of one item with ten attempts each: the probes of three hours are shared by all.
    let text = "
mode: mapreduce
map:
  input: a
  agent_template:
    - {shell: a, retry_config: {attempts: 9, backoff: fixed}, breaker: {name: payments, failure_threshold: 1}}
";
    let mut model = ProcessModel::of(&vec![(text.to_owned(), 1); 20], 1);
    model.start_and_flush(0);
    model.fail(0, 1);
    model.flush(0);
    for minute in 0..160_u64 {
        model.now = at(61 * minute + 5);
        for which in 0..20 {
            model.start_and_flush(which);
        }
        let begun: Vec<usize> = (0..20).filter(|it| !model.jobs[*it].begun.is_empty()).collect();
        let expected = usize::from(minute > 0);
        assert_eq!(begun.len(), expected, "one probe a minute: {begun:?}");
        for which in begun {
            model.fail(which, 1);
            model.flush(which);
        }
        model.now = model.now.after(secs(2));
        for which in 0..20 {
            model.start_and_flush(which);
        }
    }
    let made = |which: usize| model.jobs[which].job.active(item_at(0)).unwrap().attempts;
    let made: Vec<u32> = (0..20).map(made).collect();
    let (least, most) = (made.iter().min().unwrap(), made.iter().max().unwrap());
    assert!(most - least <= 1, "{made:?}");
    assert_eq!(made.iter().sum::<u32>(), 160);
    model.finish();
}

#[derive(Clone, Debug)]
enum ProcessAction {
    Start,
    End(usize, Option<FailureCause>),
    HandOver,
    Store,
    Acknowledge,
    Pass(u64),
    Wake,
    Look,
    Crash,
    ResumeIn,
    ByHand(bool),
    Trim,
    GiveUp,
    Cancel,
    Redrive,
    Suspend,
}

fn process_action() -> impl Strategy<Value = ProcessAction> {
    let cause = prop_oneof![
        3 => Just(None),
        6 => Just(Some(EXIT_1)),
        1 => Just(Some(FailureCause::Exit(3))),
        1 => Just(Some(FailureCause::Exit(127))),
        1 => Just(Some(FailureCause::Interrupted)),
    ];
    prop_oneof![
        16 => Just(ProcessAction::Start),
        24 => (any::<usize>(), cause).prop_map(|(which, cause)| ProcessAction::End(which, cause)),
        5 => Just(ProcessAction::HandOver),
        20 => Just(ProcessAction::Store),
        16 => Just(ProcessAction::Acknowledge),
        6 => (0_u64..4000).prop_map(ProcessAction::Pass),
        4 => Just(ProcessAction::Wake),
        5 => Just(ProcessAction::Look),
        2 => Just(ProcessAction::Crash),
        5 => Just(ProcessAction::ResumeIn),
        1 => any::<bool>().prop_map(ProcessAction::ByHand),
        2 => Just(ProcessAction::Trim),
        2 => Just(ProcessAction::GiveUp),
        1 => Just(ProcessAction::Cancel),
        3 => Just(ProcessAction::Redrive),
        1 => Just(ProcessAction::Suspend),
    ]
    .boxed()
}

impl ProcessModel {
    fn act(&mut self, which: usize, process_action: &ProcessAction) {
        let process = which % self.processes.len();
        let which = which % self.jobs.len();
        match *process_action {
            ProcessAction::Start => self.start(which),
            ProcessAction::End(attempt, cause) => self.end(which, attempt, cause),
            ProcessAction::HandOver => self.submit_batch(which),
            ProcessAction::Store => self.commit_batch(which),
            ProcessAction::Acknowledge => self.acknowledge(process),
            ProcessAction::Pass(millis) => self.now = self.now.after(Duration::from_millis(millis)),
            ProcessAction::Wake => self.feed(which, &Input::Woke),
            ProcessAction::Look => self.refresh_all(process),
            ProcessAction::Crash => self.crash(process),
            ProcessAction::ResumeIn => self.resume_in(which, process),
            ProcessAction::ByHand(trip) => self.by_hand(trip),
            ProcessAction::Trim => self.trim(process),
            ProcessAction::GiveUp => self.give_up_probes(process),
            ProcessAction::Cancel => self.feed(which, &Input::Cancel),
            ProcessAction::Redrive => {
                let items = self.jobs[which].job.dead.keys().copied().collect();
                let reduce = false;
                self.feed(which, &Input::Redrive { items, reduce, every: None });
            }
            ProcessAction::Suspend => self.suspend(which),
        }
    }
}

/// A job whose commands share breakers with other jobs.
fn job() -> impl Strategy<Value = (String, u32)> {
    let limits = prop_oneof![
        2 => Just(""),
        1 => Just("retry_budget: 4\nretry_budget_per_workflow: 2\n"),
        1 => Just("deadline: 40s\n"),
    ];
    let map = prop_oneof![
        4 => Just(""),
        1 => Just("  error_policy: {max_failures: 1}\n"),
        1 => Just("  best_effort: true\n  best_effort_min_dcs: 2\n"),
        1 => Just("  best_effort: true\n  on_complete: leave\n"),
        1 => Just("  timeout_config: {agent_timeout_secs: 9}\n"),
    ];
    let first = prop_oneof![
        3 => Just("{name: payments, failure_threshold: 2, recovery_timeout: 5s, half_open_max_calls: 2}"),
        1 => Just("{name: mail, failure_threshold: 2, recovery_timeout: 3s, when_open: fail}"),
        1 => Just("{name: stock, failure_threshold: 1, recovery_timeout: 4s, max_hold: 3s}"),
    ];
    let delay = prop_oneof![Just("0s"), Just("1s")];
    (limits, map, first, delay, 1_u32..4, 1_u32..5, any::<bool>()).prop_map(
        |(limits, map, first, delay, width, items, second)| {
            let retry = format!(
                "retry_config: {{attempts: 4, backoff: fixed, initial_delay: {delay}, rules: [{{exit_code: 3, then: hold}}]}}"
            );
            let second = if second {
                format!("    - {{shell: b, {retry}, breaker: {{name: payments, failure_threshold: 2, recovery_timeout: 5s, half_open_max_calls: 2}}}}\n")
            } else {
                String::new()
            };
            let text = format!(
                "{limits}mode: mapreduce\nmap:\n  input: a\n  max_parallel: {width}\n{map}  agent_template:\n    - {{shell: a, {retry}, breaker: {first}}}\n{second}"
            );
            (text, items)
        },
    )
    .boxed()
}

proptest! {
    #[test]
    fn processes_that_share_breakers_never_start_held_items_and_all_jobs_end(
        jobs in vec(job(), 2..5),
        processes in 1_usize..4,
        actions in vec((0_usize..12, process_action()), 0..150),
    ) {
        let mut model = ProcessModel::of(&jobs, processes);
        for (which, process_action) in &actions {
            model.act(*which, process_action);
        }
        model.finish();
    }
}
