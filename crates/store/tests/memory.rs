//! The store in memory keeps every promise.

use undaunted_store::MemoryStore;
use undaunted_store::suite::{Reopenable, run_all, run_model};

fn place() -> Reopenable {
    let root = MemoryStore::new();
    Reopenable::new(move || Box::new(root.another()))
}

#[test]
fn the_store_in_memory_keeps_every_promise() {
    run_all(place);
}

#[test]
fn the_store_in_memory_does_what_the_model_does() {
    run_model(place, 0..500);
}
