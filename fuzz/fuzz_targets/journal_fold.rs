//! Whatever a journal holds, the job can be looked at, asked about and gone on with.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(undaunted_checks::fuzz::journal_fold(data)));
