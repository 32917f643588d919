//! Whatever can be restored is saved the same again, and answers at the ends of every scale.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(undaunted_checks::fuzz::policy_restore(data)));
