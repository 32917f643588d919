//! Whatever engine, keeper and spool hand to each other is read as it was written, or refused.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(undaunted_checks::fuzz::keeper_bytes(data)));
