//! Thousands of generated cases, run without a crash, come to what the model predicts.

use std::collections::BTreeMap;

use undaunted_checks::random::SeededRandom;
use undaunted_checks::simulate::case::JobCase;
use undaunted_checks::simulate::model::compare::{Comparison, compare_run, differences, observed_choices};
use undaunted_checks::simulate::model::{PredictedEnd, Prediction, predict, predict_with};
use undaunted_engine::event::{Event, ItemEvent, Record};

use crate::world::ModelWorld;

/// How many cases are run, and from which seed on.
fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str, usual: u64| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
    let first = number("MODEL_FIRST_SEED", 0);
    first..first + number("MODEL_SEEDS", 4000)
}

#[test]
fn the_engine_does_what_the_model_predicts() {
    let mut open: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let (mut compared, mut attempts) = (0_u32, 0_usize);
    let mut differing = Vec::new();
    for seed in seeds() {
        let case = JobCase::drawn(&mut SeededRandom::new(seed));
        let mut world = ModelWorld::of(&case, seed);
        world.run();
        let started = |record: &&Record| matches!(record.event, Event::Item(ItemEvent::AttemptStarted(_)));
        attempts += world.records.iter().filter(started).count();
        match compare_run(&case, &world.job, &world.records) {
            Comparison::Same => compared += 1,
            Comparison::Unspecified(why) => open.entry(why).or_default().push(seed),
            Comparison::Different(found) => differing.push((seed, found)),
        }
    }
    println!("{compared} compared, {attempts} attempts");
    for (why, seeds) in &open {
        println!("{} open: {why} {:?}", seeds.len(), &seeds[..seeds.len().min(5)]);
    }
    for (seed, found) in differing.iter().take(40) {
        println!("seed {seed}: {found:?}");
    }
    assert_eq!(differing.len(), 0);
}

fn verdict(case: &JobCase, seed: u64) -> Comparison {
    let mut world = ModelWorld::of(case, seed);
    world.run();
    compare_run(case, &world.job, &world.records)
}

/// The smallest case found that still differs.
fn shrunk(case: JobCase, seed: u64) -> JobCase {
    let differs = |case: &JobCase| matches!(verdict(case, seed), Comparison::Different(_));
    let mut smallest = case;
    while let Some(smaller) = smallest.smaller().into_iter().find(differs) {
        smallest = smaller;
    }
    smallest
}

/// Prints one seed, shrunk if it differs: `MODEL_SEED=7`.
#[test]
fn one_seed_is_told_in_full() {
    let Ok(seed) = std::env::var("MODEL_SEED") else {
        return;
    };
    let seed = seed.parse().unwrap();
    let case = shrunk(JobCase::drawn(&mut SeededRandom::new(seed)), seed);
    let mut world = ModelWorld::of(&case, seed);
    world.run();
    println!("{}", world.describe());
    println!("{:?}", compare_run(&case, &world.job, &world.records));
}

type Mistake = fn(&mut Prediction);

#[test]
fn whatever_is_predicted_wrongly_is_a_difference() {
    let mistakes: [Mistake; 6] = [
        |it| it.end.status = "cancelled",
        |it| it.dead += 1,
        |it| it.pool_spent = Some(99),
        |it| {
            let (_, fate) = it.items.iter_mut().next().unwrap();
            *fate = match fate {
                PredictedEnd::Succeeded => PredictedEnd::Dead("attempts"),
                _ => PredictedEnd::Succeeded,
            };
        },
        |it| it.made.values_mut().next().unwrap().attempts += 1,
        |it| {
            let made = it.made.values_mut().next().unwrap();
            made.delays.push(made.spent);
        },
    ];
    for seed in 0..50 {
        let case = JobCase::drawn(&mut SeededRandom::new(seed));
        let mut world = ModelWorld::of(&case, seed);
        world.run();
        let Ok(right) = predict_with(&case, &observed_choices(&world.job, &world.records)) else {
            continue;
        };
        for (number, mistake) in mistakes.iter().enumerate() {
            let mut wrong = right.clone();
            if wrong.made.is_empty() {
                continue;
            }
            mistake(&mut wrong);
            let found = differences(&wrong, &world.job, &world.records);
            assert!(!found.is_empty(), "mistake {number} with seed {seed}");
        }
    }
}

#[test]
fn what_is_foreseen_comes_whatever_is_drawn() {
    for seed in 0..300 {
        let case = JobCase::drawn(&mut SeededRandom::new(seed));
        let Some(prediction) = predict(&case) else {
            continue;
        };
        let mut world = ModelWorld::of(&case, seed);
        world.run();
        if !matches!(compare_run(&case, &world.job, &world.records), Comparison::Unspecified(_)) {
            let found = differences(&prediction, &world.job, &world.records);
            assert_eq!(found, [""; 0], "seed {seed}");
        }
    }
}
