//! For any file, diagnostics point into the file, and an accepted workflow is consistent.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(undaunted_checks::fuzz::workflow_check(data)));
