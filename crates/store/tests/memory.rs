//! The memory store passes the suite.

use undaunted_store::MemoryStore;
use undaunted_store::suite::{Reopenable, run_all, run_model};

fn place() -> Reopenable {
    let root = MemoryStore::new();
    Reopenable::new(move || Box::new(root.another()))
}

#[test]
fn the_memory_store_passes_the_suite() {
    run_all(place);
}

#[test]
fn the_memory_store_agrees_with_the_model() {
    run_model(place, 0..500);
}
