//! Killed at random instants, again and again. The seed is printed; the same seed draws the same
//! instants, and `DURABILITY_SEED` sets it.

use std::time::{Duration, Instant};

use crate::history::{is_lawful, starts};
use crate::processes::{Running, kill, kill_and_wait};
use crate::world::World;

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

/// Numbers that look random.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn seeded() -> Self {
        let given = std::env::var("DURABILITY_SEED").ok();
        let seed = given.and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| u64::from(std::process::id()) * 1_000_003);
        println!("DURABILITY_SEED={seed}");
        Self(seed)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn world(allowed: u32) -> World {
    let world = World::of(&WORKFLOW.replace("ALLOWED", &allowed.to_string()));
    world.write("items.txt", "1\n2\n3\n4\n5\n6\n");
    world
}

/// Lets an engine run for a drawn time. None if it ended in that time.
fn for_a_while(mut dice: impl FnMut(u64) -> u64, mut engine: Running) -> Option<Running> {
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

/// Starts it again and again until it is left alone long enough.
pub(crate) fn kills(world: &World, dice: &mut Dice, mut also: impl FnMut(&mut Dice)) -> usize {
    let mut deaths = 0;
    let mut args = vec!["run", "w.yaml", "--json"];
    loop {
        let engine = world.spawn(&args);
        match for_a_while(|end| dice.below(end), engine) {
            None => return deaths,
            Some(engine) => {
                engine.kill();
                also(dice);
                deaths += 1;
            }
        }
        // Killed before it was stored there is no job, and nothing has run.
        if world.call(&["show", "@last"]).code == 0 {
            args = vec!["resume", "@last", "--json"];
        } else {
            assert_eq!(world.read("log"), "");
        }
        if deaths > 25 {
            world.call(&args);
            return deaths;
        }
    }
}

#[test]
fn an_engine_killed_at_random_instants_runs_everything_exactly_as_often_as_without() {
    let mut dice = Dice::seeded();
    for round in 1..=ROUNDS {
        let world = world(3);
        let deaths = kills(&world, &mut dice, |_| {});
        let report = world.resume().exits(0).json();
        println!("round {round}: {deaths} kills");
        let runs = world.runs("log");
        // 6 × 2, two retries of one, and the sum.
        assert_eq!(runs.len(), 15, "{runs:?}");
        assert!(runs.values().all(|runs| *runs == 1), "{runs:?}");
        assert_eq!(report["attempts"], 15);
        assert_eq!(report["retries"], 2);
        is_lawful(&world.events());
    }
}

#[test]
fn engine_and_keeper_killed_at_random_instants_never_pass_the_bound() {
    let mut dice = Dice::seeded();
    for round in 1..=ROUNDS {
        let world = world(4);
        let deaths = kills(&world, &mut dice, |dice| {
            let keepers = world.keepers();
            match dice.below(3) {
                0 => keepers.into_iter().for_each(kill),
                1 => keepers.into_iter().for_each(kill_and_wait),
                _ => {}
            }
        });
        let ended = world.resume();
        println!("round {round}: {deaths} kills, exit {}", ended.code);
        assert!([0, 4, 1].contains(&ended.code), "{ended:?}");
        // No attempt ran twice, and none past the bound.
        let runs = world.runs("log");
        assert!(runs.values().all(|runs| *runs == 1), "{runs:?}");
        let events = world.events();
        is_lawful(&events);
        assert!(starts(&events).values().all(|starts| *starts <= 5));
        let said = ended.json()["attempts"].as_u64().unwrap();
        assert_eq!(starts(&events).values().sum::<u64>(), said);
    }
}
