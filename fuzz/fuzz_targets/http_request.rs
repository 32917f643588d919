//! Whatever is asked of a server, the answer has a known shape and everything can be looked at.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(undaunted_checks::fuzz::http_request(data)));
