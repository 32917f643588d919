//! For any filter, order, path and input, items are selected in order and have names.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(undaunted_checks::fuzz::workflow_filter(data)));
