//! Proof that fuzzing notices a broken law and repeats it.

use std::collections::BTreeSet;

use undaunted_checks::fuzz::{FuzzTarget, run};

#[test]
fn a_broken_law_is_reported_with_its_input_and_the_command_that_repeats_it() {
    let wrong: FuzzTarget = |input| {
        assert!(!input.contains(&b'!'), "the input shouts");
        BTreeSet::new()
    };
    let corpus = [b"quiet".to_vec(), b"loud!".to_vec()];
    let finding = run(wrong, &corpus, 4000, 42).expect_err("the second input shouts");
    assert_eq!(
        finding.to_string(),
        "input 1 of seed 42: the input shouts\n  input:  loud!\n  \
         repeat: UNDAUNTED_SEED=42 cargo test -p undaunted-checks --test fuzz"
    );
}

#[test]
fn a_mistake_that_only_mutants_show_is_found_and_found_again_by_its_seed() {
    // Wrong for numbers from 2^32 on, which the corpus does not contain.
    let wrong: FuzzTarget = |input| {
        assert!(!input.ends_with(b"4294967296"));
        BTreeSet::new()
    };
    let corpus = [b"1".to_vec()];
    let finding = run(wrong, &corpus, 4000, 7).expect_err("a mutant is that number");
    assert!(finding.number > 0);
    assert_eq!(run(wrong, &corpus, 4000, 7), Err(finding));
}
