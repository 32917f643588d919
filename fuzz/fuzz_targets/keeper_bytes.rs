//! Any bytes between engine, keeper and spool are decoded as they were encoded, or refused.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(undaunted_checks::fuzz::keeper_bytes(data)));
