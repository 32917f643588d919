//! The completion rule against a model written from its description, for every combination of items that
//! succeeded, failed or are missing.

use proptest::collection::vec;
use proptest::prelude::*;
use undaunted_engine::event::{Event, Record, StepEvent};
use undaunted_engine::id::StartId;
use undaunted_engine::job::JobStage;
use undaunted_policy::{CompletionRule, CompletionTally};

use crate::fixture::{EXIT_1, T0, TERM, TestedJob, at, secs};

/// A decision: whether it is a success, and the reason.
type CompletionDecision = (bool, String);

/// The decision that the four sentences of the description require.
fn model(best_effort: bool, min: u64, [n, ok, failed]: [u64; 3], passed: bool) -> Option<CompletionDecision> {
    // Clamped to 1..=n, and 0 without items.
    let min = if n == 0 {
        0
    } else if min < 1 {
        1
    } else if min > n {
        n
    } else {
        min
    };
    if ok + failed == n {
        let success = if best_effort { ok >= min } else { failed == 0 };
        return Some((success, "all_dcs_reported".to_owned()));
    }
    if !best_effort {
        return None;
    }
    if ok >= min {
        return Some((true, format!("min_dcs_reached ({ok}/{min})")));
    }
    passed.then(|| (false, format!("deadline_expired (completed: {ok})")))
}

#[test]
fn the_rule_decides_as_described_for_every_combination() {
    let mut compared = 0;
    for n in 0..=6_u32 {
        for combination in 0..3_u32.pow(n) {
            let of = |item: u32| combination / 3_u32.pow(item) % 3;
            let count = |what| u64::try_from((0..n).filter(|it| of(*it) == what).count()).unwrap();
            let [ok, failed] = [count(0), count(1)];
            for (min, best_effort, passed) in cases() {
                let rule = CompletionRule { best_effort, min, deadline: secs(300) };
                let tally = CompletionTally { target: n.into(), completed: ok, failed };
                let now = if passed { at(300) } else { at(299) };
                let found = rule.decide(tally, T0.after(rule.deadline), now);
                let found = found.map(|it| (it.success, it.reason.to_string()));
                let expected = model(best_effort, min, [n.into(), ok, failed], passed);
                assert_eq!(found, expected, "{tally:?} {rule:?} {passed}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 1093 * 8 * 4);
}

/// Every minimum, best effort or not, before and after the deadline.
fn cases() -> impl Iterator<Item = (u64, bool, bool)> {
    (0..=7).flat_map(|min| {
        [(false, false), (false, true), (true, false), (true, true)]
            .map(|(best_effort, passed)| (min, best_effort, passed))
    })
}

/// The decision in the journal of a job.
fn decided(test: &TestedJob) -> Option<CompletionDecision> {
    let mut records = test.journal.iter();
    records.find_map(|bytes| match Record::decode(bytes).unwrap().event {
        Event::Step(StepEvent::CompletionReached(reached)) => {
            let completion = reached.completion();
            Some((completion.success, completion.reason.to_string()))
        }
        _ => None,
    })
}

fn begun(n: u32, min: u64, best_effort: bool) -> TestedJob {
    let rule = if best_effort {
        format!("  best_effort: true\n  best_effort_min_dcs: {min}\n")
    } else {
        String::new()
    };
    let text = format!("mode: mapreduce\nmap:\n  input: a\n{rule}  agent_template: [{{shell: a}}]\n");
    TestedJob::started_over(&text, n)
}

/// Items report one after the other, the failed ones first or last. The first decision is final.
fn compare([n, ok, failed]: [u32; 3], begun: &TestedJob, min: u64, failures_first: bool, late: bool) {
    let mut test = begun.clone();
    let mut expected = model(true, min, [n.into(), 0, 0], false);
    assert_eq!(decided(&test), expected);
    if late {
        // Results that were collected before the wake-up count first.
        test.at(300);
    }
    let mut counts = [0_u64; 2];
    for number in 0..ok + failed {
        let fails = if failures_first { number < failed } else { number >= ok };
        if test.job.stage != JobStage::Running {
            break;
        }
        let Some(start) = test.job.starts.running.keys().next().copied() else {
            break;
        };
        test.end_start(start, fails.then_some(EXIT_1));
        counts[usize::from(fails)] += 1;
        let now = model(true, min, [n.into(), counts[0], counts[1]], false);
        expected = expected.or(now);
        assert_eq!(decided(&test), expected, "{n} {counts:?} {min}");
    }
    test.at(300).wake();
    expected = expected.or_else(|| model(true, min, [n.into(), counts[0], counts[1]], true));
    assert_eq!(decided(&test), expected, "{n} {counts:?} {min}");
    while let Some(start) = test.job.starts.running.keys().next().copied() {
        test.end_start(start, Some(TERM));
    }
    let success = expected.unwrap().0;
    let status = if success { "completed" } else { "partial" };
    assert_eq!(test.outcome().0, status);
}

#[test]
fn a_job_decides_as_described_in_any_order_of_results() {
    for n in 0..=6_u32 {
        for min in 0..=7 {
            let begun = begun(n, min, true);
            for ok in 0..=n {
                for failed in 0..=n - ok {
                    for (failures_first, late) in [(false, false), (true, false), (false, true), (true, true)]
                    {
                        compare([n, ok, failed], &begun, min, failures_first, late);
                    }
                }
            }
        }
    }
}

#[test]
fn a_job_without_best_effort_waits_for_all_and_is_complete_if_none_failed() {
    for n in 0..=6_u32 {
        let begun = begun(n, 1, false);
        for failed in 0..=n {
            let mut test = begun.clone();
            for number in 0..n {
                assert!(!test.job.stage.has_ended());
                test.at(300 + u64::from(number)).wake();
                let failure = (number < failed).then_some(EXIT_1);
                test.end_start(test.start_of(number), failure);
            }
            let counts = [n.into(), u64::from(n - failed), failed.into()];
            let (success, _) = model(false, 1, counts, true).unwrap();
            let status = if success { "completed" } else { "partial" };
            assert_eq!(test.outcome().0, status);
        }
    }
}

proptest! {
    #[test]
    fn unknown_and_repeated_results_never_change_the_decision(
        min in 0_u64..5,
        reports in vec((0_u64..12, any::<bool>()), 0..30),
    ) {
        let mut test = begun(4, min, true);
        let mut counts = [0_u64; 2];
        let mut reported = std::collections::BTreeSet::new();
        let mut expected = None;
        for (start, fails) in reports {
            // The first four starts are those of the items.
            let known = (1..=4).contains(&start) && reported.insert(start);
            let before = test.journal.len();
            test.end_start(StartId(start), fails.then_some(EXIT_1));
            prop_assert!(known || test.journal.len() == before);
            if known && expected.is_none() {
                counts[usize::from(fails)] += 1;
                expected = model(true, min, [4, counts[0], counts[1]], false);
            }
            prop_assert_eq!(decided(&test), expected.clone());
            let tally = test.job.tally();
            prop_assert_eq!([tally.succeeded, tally.dead], counts);
        }
    }
}
