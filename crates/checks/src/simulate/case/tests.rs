//! Generated and shrunk cases are valid workflows.

use undaunted_engine::workflow::{Operator, Severity, Source, check};

use super::{CaseShape, JobCase};
use crate::random::SeededRandom;

fn drawn(seed: u64) -> JobCase {
    JobCase::drawn(&mut SeededRandom::new(seed))
}

/// The diagnostics of the text of a case.
fn errors(case: &JobCase) -> Vec<String> {
    let text = case.text();
    let checked = check(&Source::new("w.yaml", &text), &Operator::default());
    let found = checked.diagnostics.iter();
    let errors = found.filter(|it| it.code.severity() == Severity::Error);
    let mut errors: Vec<String> = errors.map(|it| it.message.clone()).collect();
    if checked.workflow.is_none() {
        errors.push("no workflow".to_owned());
    }
    if !errors.is_empty() {
        errors.push(text);
    }
    errors
}

#[test]
fn ten_thousand_cases_are_valid_workflows() {
    for seed in 0..10_000 {
        assert_eq!(errors(&drawn(seed)), [""; 0], "seed {seed}");
    }
}

#[test]
fn every_shrunk_case_is_valid_and_smaller() {
    for seed in 0..200 {
        let case = drawn(seed);
        assert!(case.can_end(), "seed {seed}");
        for smaller in case.smaller() {
            assert_eq!(errors(&smaller), [""; 0], "seed {seed}");
            assert!(smaller.can_end(), "seed {seed}");
            let length = |case: &JobCase| case.text().len();
            assert!(length(&smaller) <= length(&case), "seed {seed}");
        }
    }
}

#[test]
fn the_same_seed_draws_the_same_case_and_all_kinds_are_drawn() {
    let mut kinds = [0_u32; 3];
    for seed in 0..1000 {
        let case = drawn(seed);
        assert_eq!(case, drawn(seed));
        let kind = match case.shape {
            CaseShape::List(_) => 0,
            CaseShape::Map(_) => 1,
            CaseShape::Flow(_) => 2,
        };
        kinds[kind] += 1;
    }
    assert!(kinds.iter().all(|it| *it > 80), "{kinds:?}");
}
