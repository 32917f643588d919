//! Engine and keeper are killed at random instants, again and again. The seed is printed; the same seed draws
//! the same instants, and `DURABILITY_SEED` sets it.

use std::time::{Duration, Instant};

use crate::history::{assert_fields, starts};
use crate::processes::{ChildProcess, Dice, kill, kill_and_wait};
use crate::sandbox::Sandbox;

const ROUNDS: usize = 12;

const WORKFLOW: &str = "
mode: mapreduce
map:
  input: items.txt
  max_parallel: 3
  agent_template:
    - id: first
      shell: echo first-${item}-$UNDAUNTED_ATTEMPT >> log; sleep 0.00${item}
      retry_config: {attempts: ALLOWED, backoff: fixed, initial_delay: 3ms}
    - id: second
      shell: |
        echo second-${item}-$UNDAUNTED_ATTEMPT >> log
        test ${item} != 4 || test $UNDAUNTED_ATTEMPT -gt 2
      retry_config: {attempts: ALLOWED, backoff: fixed, initial_delay: 3ms}
reduce:
  - id: sum
    shell: echo sum-${map.successful}-$UNDAUNTED_ATTEMPT >> log
    retry_config: {attempts: ALLOWED, backoff: fixed, initial_delay: 3ms}
";

fn sandbox(allowed: u32) -> Sandbox {
    let sandbox = Sandbox::of(&WORKFLOW.replace("ALLOWED", &allowed.to_string()));
    sandbox.write("items.txt", "1\n2\n3\n4\n5\n6\n");
    sandbox
}

/// Lets an engine run for a random time; `None` if it ended in that time.
fn run_for_a_while(mut dice: impl FnMut(u64) -> u64, mut engine: ChildProcess) -> Option<ChildProcess> {
    let began = Instant::now();
    let time = Duration::from_micros(dice(60_000));
    while began.elapsed() < time {
        if engine.has_ended() {
            return None;
        }
        std::thread::yield_now();
    }
    Some(engine)
}

/// Runs, kills and resumes the job until an engine reaches its end.
pub(crate) fn kill_until_done(sandbox: &Sandbox, dice: &mut Dice, mut also: impl FnMut(&mut Dice)) -> usize {
    let mut deaths = 0;
    let mut args = vec!["run", "w.yaml", "--json"];
    loop {
        let engine = sandbox.spawn(&args);
        match run_for_a_while(|end| dice.below(end), engine) {
            None => return deaths,
            Some(engine) => {
                engine.kill();
                also(dice);
                deaths += 1;
            }
        }
        // If the process was killed before it stored the job, no command has run.
        if sandbox.call(&["show", "@last"]).code == 0 {
            args = vec!["resume", "@last", "--json"];
        } else {
            assert_eq!(sandbox.read("log"), "");
        }
        if deaths > 25 {
            sandbox.call(&args);
            return deaths;
        }
    }
}

#[test]
fn an_engine_killed_at_random_instants_runs_everything_exactly_as_often_as_without() {
    let mut dice = Dice::seeded();
    for round in 1..=ROUNDS {
        let sandbox = sandbox(3);
        let deaths = kill_until_done(&sandbox, &mut dice, |_| {});
        let report = sandbox.resume().exits(0).json();
        println!("round {round}: {deaths} kills");
        let runs = sandbox.runs("log");
        // 6 × 2 commands, two retries of one, and the sum.
        assert_eq!(runs.len(), 15, "{runs:?}");
        assert!(runs.values().all(|runs| *runs == 1), "{runs:?}");
        assert_fields!(report, {"attempts": 15, "retries": 2});
        sandbox.lawful_events();
    }
}

#[test]
fn engine_and_keeper_killed_at_random_instants_never_pass_the_bound() {
    let mut dice = Dice::seeded();
    for round in 1..=ROUNDS {
        let sandbox = sandbox(4);
        let deaths = kill_until_done(&sandbox, &mut dice, |dice| {
            let keepers = sandbox.keepers();
            match dice.below(3) {
                0 => keepers.into_iter().for_each(kill),
                1 => keepers.into_iter().for_each(kill_and_wait),
                _ => {}
            }
        });
        let ended = sandbox.resume();
        println!("round {round}: {deaths} kills, exit {}", ended.code);
        assert!([0, 4, 1].contains(&ended.code), "{ended:?}");
        // No attempt ran twice, and no command ran more often than allowed.
        let runs = sandbox.runs("log");
        assert!(runs.values().all(|runs| *runs == 1), "{runs:?}");
        let events = sandbox.lawful_events();
        assert!(starts(&events).values().all(|starts| *starts <= 5));
        let attempts = ended.json()["attempts"].as_u64().unwrap();
        assert_eq!(starts(&events).values().sum::<u64>(), attempts);
    }
}
