//! Whatever is sent as a result, only a token that was given out is anybody's.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(undaunted_checks::fuzz::webhook_result(data)));
