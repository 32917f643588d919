//! Whatever a filter, an order, a path and an input hold, items are taken in order and have names.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(undaunted_checks::fuzz::workflow_filter(data)));
