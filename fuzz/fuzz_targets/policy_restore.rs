//! Any state that can be restored is saved identically and handles extreme values.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(undaunted_checks::fuzz::policy_restore(data)));
