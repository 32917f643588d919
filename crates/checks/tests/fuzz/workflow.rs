//! The workflow language: files, texts with references, filters and inputs.

use undaunted_checks::fuzz::{workflow_check, workflow_filter, workflow_template};

use crate::feed::{brings_up, fuzz};

#[test]
fn no_mutant_of_a_workflow_breaks_a_law() {
    fuzz(workflow_check, "workflow_check", 1000);
}

#[test]
fn no_mutant_of_a_template_breaks_a_law() {
    fuzz(workflow_template, "workflow_template", 1000);
}

#[test]
fn no_mutant_of_a_filter_breaks_a_law() {
    fuzz(workflow_filter, "workflow_filter", 1000);
}

#[test]
fn a_run_meets_every_way_a_template_is_read() {
    let expected = ["shell", "shell refused", "text", "text refused", "reference", "raw", "default"];
    brings_up(workflow_template, "workflow_template", 500, &expected);
}
