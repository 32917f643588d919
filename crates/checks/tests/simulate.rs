//! Some seeds in every run, and proof that broken engines are noticed.
//!
//! The seeds are always the same; `UNDAUNTED_SEED` sets another first one. Long campaigns are `cargo run
//! --release -p undaunted-checks -- simulate`.

use undaunted_checks::repository;
use undaunted_checks::simulate::check_seed;
use undaunted_engine::mutant::{self, Mutant};

/// How many seeds a broken engine may pass.
const PASSED: u64 = 1000;

fn first_seed() -> u64 {
    let Ok(given) = std::env::var("UNDAUNTED_SEED") else {
        return 1;
    };
    let seed = given.parse().ok();
    assert!(seed.is_some(), "a seed is a number, not `{given}`");
    seed.unwrap_or_default()
}

#[test]
fn no_law_is_broken() {
    let first = first_seed();
    eprintln!("UNDAUNTED_SEED={first}");
    for seed in first..first + 100 {
        assert_eq!(check_seed(seed).finding, None, "seed {seed}");
    }
}

#[test]
fn a_seed_always_stands_for_the_same() {
    for seed in 1..40 {
        assert_eq!(check_seed(seed), check_seed(seed));
    }
}

/// Every mutant of the list is noticed with its seed, and the engine itself passes that seed.
#[test]
fn no_past_bug_comes_back() {
    let list = repository().join("crates/checks/regressions.txt");
    let list = std::fs::read_to_string(list).expect("the list can be read");
    let lines = list.lines().filter(|line| line.starts_with("simulate "));
    let mut listed = Vec::new();
    for line in lines {
        let mut words = line.split_whitespace().skip(1);
        let seed = words.next().and_then(|seed| seed.parse().ok());
        let seed = seed.expect("a seed is a number");
        let name = words.next().expect("a mutant has a name");
        let mutant = Mutant::PAST_BUGS.into_iter().find(|it| format!("{it:?}") == name);
        let mutant = mutant.expect("a past bug");
        assert_eq!(check_seed(seed).finding, None, "{line}");
        mutant::choose(Some(mutant));
        let found = check_seed(seed).finding;
        mutant::choose(None);
        assert!(found.is_some(), "not noticed any more: {line}");
        listed.push(mutant);
    }
    assert_eq!(listed, Mutant::PAST_BUGS, "one line for each, in their order");
}

#[test]
fn seeds_that_found_something_are_clean() {
    let list = repository().join("crates/checks/regressions.txt");
    let list = std::fs::read_to_string(list).expect("the list can be read");
    let seeds = list.lines().filter_map(|line| line.strip_prefix("seed "));
    let seeds = seeds.map(|line| line.split_whitespace().next().and_then(|it| it.parse().ok()));
    let seeds: Vec<u64> = seeds.collect::<Option<_>>().expect("a seed is a number");
    assert!(!seeds.is_empty());
    for seed in seeds {
        assert_eq!(check_seed(seed).finding, None, "seed {seed}");
    }
}

fn caught(mutant: Mutant) -> Option<u64> {
    mutant::choose(Some(mutant));
    let found = (1..=PASSED).find(|seed| check_seed(*seed).finding.is_some());
    mutant::choose(None);
    found
}

/// One test for each broken engine.
macro_rules! broken_engines {
    ($($name:ident: $mutant:ident,)*) => {
        $(
            #[test]
            fn $name() {
                let seed = caught(Mutant::$mutant);
                eprintln!("found by seed {seed:?}");
                assert!(seed.is_some(), "{PASSED} seeds do not notice it");
            }
        )*

        #[test]
        fn every_broken_engine_has_a_test() {
            assert_eq!([$(Mutant::$mutant),*], Mutant::HYPOTHETICAL);
        }
    };
}

broken_engines! {
    one_attempt_too_many_is_noticed: ExtraAttempt,
    jitter_that_is_drawn_anew_is_noticed: UnseededJitter,
    a_budget_that_is_never_used_up_is_noticed: BudgetIgnored,
    a_breaker_that_is_not_asked_is_noticed: BreakerIgnored,
    a_pool_that_is_not_charged_after_a_crash_is_noticed: PoolIgnoredAfterResume,
    a_wait_that_begins_anew_on_resume_is_noticed: WaitRestartedOnResume,
    a_retry_before_its_time_is_noticed: EarlyRetry,
    a_late_report_that_counts_for_another_attempt_is_noticed: LateReportCounted,
    a_dead_letter_that_is_not_counted_is_noticed: DeadLetterNotCounted,
    what_is_done_before_it_is_written_is_noticed: ActsBeforeCommit,
    what_is_forgotten_before_it_is_written_is_noticed: ResultDiscardedBeforeCommit,
    a_lost_write_is_noticed: FailedWriteIgnored,
    a_second_start_of_an_attempt_is_noticed: UnknownAttemptRestarted,
    a_second_start_after_a_takeover_is_noticed: ReconnectLosesRunning,
    a_fact_that_a_breaker_never_gets_is_noticed: BreakerReportLost,
    a_start_that_its_own_facts_forbid_is_noticed: UnwrittenFactsIgnored,
    two_probers_are_noticed: ProbeWithoutClaim,
    a_hold_that_is_charged_is_noticed: HoldCharged,
    a_reservation_that_is_begun_twice_is_noticed: ReservationBegunTwice,
    a_reservation_that_begins_after_a_stop_is_noticed: ReservationNotWithdrawn,
}
