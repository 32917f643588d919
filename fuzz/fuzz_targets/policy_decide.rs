//! Whatever befalls a command or a breaker, no law is broken.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(undaunted_checks::fuzz::policy_decide(data)));
