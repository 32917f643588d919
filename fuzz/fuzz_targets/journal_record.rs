//! Any bytes that decode as a record encode to the same record again.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(undaunted_checks::fuzz::journal_record(data)));
