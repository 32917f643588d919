//! Whatever a file holds, the answer about it lies in the file, and a workflow hangs together.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(undaunted_checks::fuzz::workflow_check(data)));
