//! Imported files: archives, and states of another system.

use undaunted_checks::fuzz::{archive_restore, state_import};

use crate::feed::{brings_up, fuzz};

#[test]
fn no_mutant_of_an_archive_breaks_a_law() {
    fuzz(archive_restore, "archive_restore", 1500);
}

#[test]
fn some_mutants_of_archives_are_restored_and_others_refused() {
    let expected = ["restored", "unfit", "newer"];
    brings_up(archive_restore, "archive_restore", 600, &expected);
}

#[test]
fn no_mutant_of_a_state_breaks_a_law() {
    fuzz(state_import, "state_import", 1500);
}

#[test]
fn some_mutants_of_states_fit_and_others_do_not() {
    let expected = ["nothing", "used up", "pending", "refused", "unreadable"];
    brings_up(state_import, "state_import", 600, &expected);
}
