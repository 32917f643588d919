//! For any journal, the job can be read, queried and resumed.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(undaunted_checks::fuzz::journal_fold(data)));
