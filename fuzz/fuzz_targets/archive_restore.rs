//! For any archive file, a job is restored completely or not at all.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(undaunted_checks::fuzz::archive_restore(data)));
