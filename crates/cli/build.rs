//! How the binary is linked.
//!
//! At a fixed address: otherwise 32 000 pointers are put right and a hundred pages copied before `main`,
//! half a millisecond in every process, and a job with one command makes two. Code of libraries, the stack
//! and the heap are at random addresses all the same.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    // Elsewhere, and where libraries are linked in, the linker is told in other ways.
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
