//! For any webhook request, only a token that was issued for the step is accepted.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(undaunted_checks::fuzz::webhook_result(data)));
