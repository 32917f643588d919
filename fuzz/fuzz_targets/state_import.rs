//! Any state file of another system becomes a job for which all laws hold, or is refused.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(undaunted_checks::fuzz::state_import(data)));
