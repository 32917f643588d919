//! Thousands of generated jobs, run without a fault, come to what the reference model predicts.

#![expect(clippy::expect_used, reason = "a panic in a test is a red test")]

use std::collections::BTreeMap;

use undaunted_checks::random::SeededRandom;
use undaunted_checks::simulate::case::JobCase;
use undaunted_checks::simulate::model::compare::{
    ModelComparison, compare_run, differences, observed_choices,
};
use undaunted_checks::simulate::model::{DelayRange, PredictedEnd, Prediction, predict, predict_with};
use undaunted_checks::simulate::{SimPlan, run};
use undaunted_engine::event::Record;
use undaunted_engine::job::Job;

fn seeds() -> std::ops::Range<u64> {
    let number =
        |name: &str, usual: u64| std::env::var(name).map_or(usual, |text| text.parse().expect("a number"));
    let first = number("MODEL_FIRST_SEED", 0);
    first..first + number("MODEL_SEEDS", 2000)
}

/// The case of a seed, and the job that ran it.
fn ran(seed: u64) -> (JobCase, Job, Vec<Record>) {
    let case = JobCase::drawn(&mut SeededRandom::new(seed));
    let outcome = run(&SimPlan { seed, cases: vec![case.clone()], ..SimPlan::of(seed) }.calm(), false);
    assert_eq!(outcome.violations, [""; 0], "seed {seed}");
    let (job, records) = outcome.jobs.into_iter().next().expect("one job");
    (case, job, records)
}

#[test]
fn the_engine_does_what_the_model_predicts() {
    let mut unspecified: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for seed in seeds() {
        let (case, job, records) = ran(seed);
        match compare_run(&case, &job, &records) {
            ModelComparison::Same => {}
            ModelComparison::Unspecified(why) => unspecified.entry(why).or_default().push(seed),
            ModelComparison::Different(found) => panic!("seed {seed}: {found:?}\n{}", case.text()),
        }
    }
    for (why, seeds) in &unspecified {
        println!("{} unspecified: {why} {:?}", seeds.len(), &seeds[..seeds.len().min(5)]);
    }
}

/// A change of a prediction that makes it wrong.
type WrongPrediction = fn(&mut Prediction);

#[test]
fn a_wrong_prediction_is_a_difference() {
    let mistakes: [WrongPrediction; 6] = [
        |it| it.end.status = "cancelled",
        |it| it.dead += 1,
        |it| it.pool_spent = Some(99),
        |it| {
            let (_, end) = it.items.iter_mut().next().unwrap();
            *end = match end {
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
        let (case, job, records) = ran(seed);
        let Ok(right) = predict_with(&case, &observed_choices(&job, &records)) else {
            continue;
        };
        for (number, mistake) in mistakes.iter().enumerate().filter(|_| !right.made.is_empty()) {
            let mut wrong = right.clone();
            mistake(&mut wrong);
            let found = differences(&wrong, &job, &records);
            assert!(!found.is_empty(), "mistake {number} with seed {seed}");
        }
    }
}

#[test]
fn a_prediction_without_random_delays_needs_no_observations() {
    for seed in 0..300 {
        let (case, job, records) = ran(seed);
        let Some(prediction) = predict(&case) else {
            continue;
        };
        // `predict` assumes the same percentage for all random delays, so their order is not tried.
        let is_exact = prediction.made.values().all(|it| it.delays.iter().all(DelayRange::is_exact));
        let has_releases = !observed_choices(&job, &records).releases.is_empty();
        let comparison = compare_run(&case, &job, &records);
        if is_exact && !has_releases && !matches!(comparison, ModelComparison::Unspecified(_)) {
            assert_eq!(differences(&prediction, &job, &records), [""; 0], "seed {seed}");
        }
    }
}
