//! Jobs of several processes that share breakers. Whatever the order of starts, ends, deaths and looks,
//! no process starts what it knows to be held, at most one probe is under way, every result is one fact,
//! nothing is refused, and everything ends when all is well.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use undaunted_engine::input::Input;
use undaunted_policy::{CircuitState, FailureCause};

use crate::scene::{at, secs};
use crate::world::World;
use undaunted_engine::id::StepId;

const NAME: &str = "payments";

/// Two jobs of three items, which run two at a time, each in a process of its own.
fn two() -> World {
    let text = "
mode: mapreduce
map:
  input: a
  max_parallel: 2
  agent_template:
    - {shell: a, retry_config: {attempts: 4, backoff: fixed}, breaker: {name: payments, failure_threshold: 2}}
";
    World::of(&[(text.to_owned(), 3), (text.to_owned(), 3)], 2)
}

fn running(world: &World) -> [usize; 2] {
    [0, 1].map(|which: usize| world.runs[which].job.starts.running.len())
}

/// What the breaker is on the disk.
fn word(world: &World) -> &'static str {
    world.breakers.fold(NAME).state.word()
}

#[test]
fn a_start_that_another_process_would_have_held_stands_and_its_result_is_ignored() {
    let mut world = two();
    world.start(0);
    world.flush(0);
    world.start(1);
    world.end(0, 0, Some(FailureCause::Exit(1)));
    world.end(0, 0, Some(FailureCause::Exit(1)));
    world.flush(0);
    assert_eq!(word(&world), "open");
    // The second process has not looked; what it has started is taken and begins.
    world.flush(1);
    assert_eq!(running(&world), [0, 2]);
    assert_eq!(world.runs[1].begun.len(), 2);
    let open = world.breakers.fold(NAME).state;
    world.end(1, 0, None);
    world.end(1, 0, Some(FailureCause::Exit(1)));
    world.flush(1);
    assert_eq!(world.breakers.fold(NAME).state, open, "from before the opening");
    assert_eq!(world.admission(1).get(NAME), Some(&open), "it had to look");
    world.start(1);
    assert_eq!(running(&world), [0, 0]);
    world.heal();
}

#[test]
fn results_of_two_processes_count_together_in_the_order_of_the_journal() {
    let mut world = two();
    for which in [0, 1] {
        world.start(which);
        world.flush(which);
    }
    // Each process has seen one failure; together they are two in a row.
    world.end(0, 0, Some(FailureCause::Exit(1)));
    world.end(1, 0, Some(FailureCause::Exit(1)));
    assert_eq!(world.admission(0).get(NAME).unwrap().failures(), 1);
    assert_eq!(world.admission(1).get(NAME).unwrap().failures(), 1);
    world.flush(0);
    assert_eq!(word(&world), "closed");
    world.flush(1);
    assert_eq!(word(&world), "open");
    assert_eq!(world.admission(0).get(NAME).unwrap().word(), "closed");
    assert_eq!(world.admission(1).get(NAME).unwrap().word(), "open");
    world.look_at_all(0);
    assert_eq!(world.admission(0).get(NAME).unwrap().word(), "open");
    let changes = world.breakers.fold(NAME).changes;
    let opened = changes.iter().filter(|(_, it)| it.change.is_transition());
    let opened: Vec<_> = opened.map(|(_, it)| (it.job.as_deref(), it.failures)).collect();
    assert_eq!(opened, [(Some("job01"), 2)], "recorded once, with the breaker");
    world.heal();
}

#[test]
fn of_two_processes_that_would_probe_the_one_with_the_claim_does() {
    let mut world = two();
    for which in [0, 1] {
        world.start(which);
        world.flush(which);
        world.end(which, 0, None);
        world.flush(which);
    }
    world.by_hand(true);
    for which in [0, 1] {
        world.look_at_all(which);
        world.start(which);
        world.end(which, 0, None);
        world.start(which);
        world.flush(which);
    }
    world.now = at(60);
    for which in [1, 0] {
        world.start(which);
        world.flush(which);
    }
    assert_eq!(running(&world), [0, 1]);
    let probe = world.breakers.fold(NAME).state.probe;
    assert_eq!(probe.unwrap().job, "job01");
    // The first process hears that the claim is free, and probes next.
    world.end(1, 0, None);
    world.flush(1);
    world.crash(1);
    world.look_at_all(0);
    let awakened = world.processes[0].admission.take_jobs_to_wake();
    assert!(awakened.contains("job00"));
    world.start(0);
    world.flush(0);
    assert_eq!(running(&world), [1, 0]);
    world.heal();
}

#[test]
fn a_process_holds_what_its_own_results_have_closed_before_they_are_written() {
    let mut world = two();
    world.start(0);
    world.flush(0);
    world.end(0, 0, Some(FailureCause::Exit(1)));
    world.end(0, 0, Some(FailureCause::Exit(1)));
    world.start(0);
    assert_eq!(running(&world), [0, 0]);
    assert_eq!(world.runs[0].job.held_by(NAME), 1, "the third item");
    assert_eq!(word(&world), "closed", "nothing is on the disk");
    world.crash(0);
    world.adopt(0, 0);
    assert_eq!(running(&world), [2, 0], "they run again");
    assert_eq!(world.admission(0).get(NAME).unwrap().word(), "closed");
    world.heal();
}

#[test]
fn a_probe_whose_process_is_gone_is_given_up_when_it_is_overdue_and_no_longer_counts() {
    let mut world = two();
    for which in [0, 1] {
        world.start(which);
        world.flush(which);
    }
    world.end(0, 0, Some(FailureCause::Exit(1)));
    world.end(0, 0, Some(FailureCause::Exit(1)));
    world.flush(0);
    world.look_at_all(1);
    for _ in 0..2 {
        world.end(1, 0, Some(FailureCause::Exit(1)));
    }
    world.now = at(60);
    world.start(0);
    world.flush(0);
    assert_eq!(running(&world), [1, 0]);
    world.crash(0);
    world.look_at_all(1);
    world.start(1);
    assert_eq!(running(&world), [1, 0], "it may be at work still");
    world.now = at(119);
    world.give_up_probes(1);
    world.start(1);
    assert_eq!(running(&world), [1, 0], "it is not overdue");
    world.now = at(120);
    world.give_up_probes(1);
    world.start(1);
    world.flush(1);
    assert_eq!(running(&world), [1, 1], "two run, one counts");
    world.adopt(0, 0);
    world.end(0, 0, Some(FailureCause::Exit(1)));
    world.flush(0);
    let phase = world.breakers.fold(NAME).state.breaker.circuit();
    let (successes, probing) = (0, true);
    assert_eq!(phase, CircuitState::HalfOpen { successes, probing });
    world.heal();
}

#[test]
fn a_long_outage_costs_no_job_of_a_process_more_than_its_share() {
    // Twenty jobs of one item with ten attempts each: the probes of three hours are shared by all.
    let text = "
mode: mapreduce
map:
  input: a
  agent_template:
    - {shell: a, retry_config: {attempts: 9, backoff: fixed}, breaker: {name: payments, failure_threshold: 1}}
";
    let mut world = World::of(&vec![(text.to_owned(), 1); 20], 1);
    world.start(0);
    world.flush(0);
    world.end(0, 0, Some(FailureCause::Exit(1)));
    world.flush(0);
    for minute in 0..160_u64 {
        world.now = at(61 * minute + 5);
        for which in 0..20 {
            world.start(which);
            world.flush(which);
        }
        let begun: Vec<usize> = (0..20).filter(|it| !world.runs[*it].begun.is_empty()).collect();
        let expected = usize::from(minute > 0);
        assert_eq!(begun.len(), expected, "one probe a minute: {begun:?}");
        for which in begun {
            world.end(which, 0, Some(FailureCause::Exit(1)));
            world.flush(which);
        }
        world.now = world.now.after(secs(2));
        for which in 0..20 {
            world.start(which);
            world.flush(which);
        }
    }
    let made = |which: usize| world.runs[which].job.active(StepId(0).item(0)).unwrap().attempts;
    let made: Vec<u32> = (0..20).map(made).collect();
    let (least, most) = (made.iter().min().unwrap(), made.iter().max().unwrap());
    assert!(most - least <= 1, "{made:?}");
    assert_eq!(made.iter().sum::<u32>(), 160);
    world.heal();
}

/// Something that happens to one of the jobs, or to one of the processes.
#[derive(Clone, Debug)]
enum Happening {
    Start,
    End(usize, Option<FailureCause>),
    HandOver,
    Store,
    Acknowledge,
    Pass(u64),
    Wake,
    Look,
    Crash,
    Adopt,
    ByHand(bool),
    Trim,
    GiveUp,
    Cancel,
    Redrive,
    Suspend,
}

fn happening() -> impl Strategy<Value = Happening> {
    let cause = prop_oneof![
        3 => Just(None),
        6 => Just(Some(FailureCause::Exit(1))),
        1 => Just(Some(FailureCause::Exit(3))),
        1 => Just(Some(FailureCause::Exit(127))),
        1 => Just(Some(FailureCause::Interrupted)),
    ];
    prop_oneof![
        16 => Just(Happening::Start),
        24 => (any::<usize>(), cause).prop_map(|(which, cause)| Happening::End(which, cause)),
        5 => Just(Happening::HandOver),
        20 => Just(Happening::Store),
        16 => Just(Happening::Acknowledge),
        6 => (0_u64..4000).prop_map(Happening::Pass),
        4 => Just(Happening::Wake),
        5 => Just(Happening::Look),
        2 => Just(Happening::Crash),
        5 => Just(Happening::Adopt),
        1 => any::<bool>().prop_map(Happening::ByHand),
        2 => Just(Happening::Trim),
        2 => Just(Happening::GiveUp),
        1 => Just(Happening::Cancel),
        3 => Just(Happening::Redrive),
        1 => Just(Happening::Suspend),
    ]
    .boxed()
}

impl World {
    fn happen(&mut self, which: usize, happening: &Happening) {
        let process = which % self.processes.len();
        let which = which % self.runs.len();
        match *happening {
            Happening::Start => self.start(which),
            Happening::End(attempt, cause) => self.end(which, attempt, cause),
            Happening::HandOver => self.hand_over(which),
            Happening::Store => self.store(which),
            Happening::Acknowledge => self.acknowledge(process),
            Happening::Pass(millis) => self.now = self.now.after(Duration::from_millis(millis)),
            Happening::Wake => self.decide(which, &Input::Woke),
            Happening::Look => self.look_at_all(process),
            Happening::Crash => self.crash(process),
            Happening::Adopt => self.adopt(which, process),
            Happening::ByHand(trip) => self.by_hand(trip),
            Happening::Trim => self.trim(process),
            Happening::GiveUp => self.give_up_probes(process),
            Happening::Cancel => self.decide(which, &Input::Cancel),
            Happening::Redrive => {
                let items = self.runs[which].job.dead.keys().copied().collect();
                let reduce = false;
                self.decide(which, &Input::Redrive { items, reduce });
            }
            Happening::Suspend => self.suspend(which),
        }
    }
}

/// A job whose commands ask breakers that others ask too.
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
    fn processes_that_share_breakers_never_start_what_they_know_to_be_held_and_all_jobs_end(
        jobs in vec(job(), 2..5),
        processes in 1_usize..4,
        happenings in vec((0_usize..12, happening()), 0..150),
    ) {
        let mut world = World::of(&jobs, processes);
        for (which, happening) in &happenings {
            world.happen(*which, happening);
        }
        world.heal();
    }
}
