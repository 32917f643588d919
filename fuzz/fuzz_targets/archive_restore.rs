//! Whatever a file holds, a job comes back from it as a whole or not at all.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(undaunted_checks::fuzz::archive_restore(data)));
