//! For any failures and breaker inputs, the laws of the policy hold.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(undaunted_checks::fuzz::policy_decide(data)));
