//! Whatever another system wrote down, it makes a job that keeps all laws, or is refused.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(undaunted_checks::fuzz::state_import(data)));
