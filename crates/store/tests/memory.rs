//! The store in memory keeps every promise.

use undaunted_store::MemoryStore;
use undaunted_store::suite::{Place, run_all, run_model};

fn place() -> Place {
    let root = MemoryStore::new();
    Place::new(move || Box::new(root.another()))
}

#[test]
fn the_store_in_memory_keeps_every_promise() {
    run_all(place);
}

#[test]
fn the_store_in_memory_does_what_the_model_does() {
    run_model(place, 0..500);
}
