//! Whatever can be read as a record is written so that the same is read again.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(undaunted_checks::fuzz::journal_record(data)));
