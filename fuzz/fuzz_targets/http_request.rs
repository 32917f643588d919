//! For any HTTP request, the response has a documented form and every job can still be read.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(undaunted_checks::fuzz::http_request(data)));
