//! For any template and values, no value becomes code.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(undaunted_checks::fuzz::workflow_template(data)));
