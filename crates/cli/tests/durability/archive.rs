//! Archiving, killed at every place: the job, its file or both are there, and doing it again finishes.

use std::sync::Arc;

use undaunted_engine::catalog::{Catalog, FlowLifecycle};
use undaunted_engine::job::Plans;
use undaunted_runner::catalog::{CatalogHandle, activated, deactivated};
use undaunted_runner::journal;
use undaunted_store::{SqliteStore, Store};

use crate::world::World;

/// A flow that fails at once: nobody listens there.
const FLOW: &str = "
mode: flow
goals: [resize]
steps:
  - id: resize
    type: sync
    http: {endpoint: 'http://127.0.0.1:9/'}
    work_config: {max_retries: 0}
    attributes: {small: {role: output}}
";

fn open(world: &World) -> (Arc<dyn Store>, CatalogHandle) {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(world.store()).unwrap());
    let book = CatalogHandle::open(Arc::clone(&store)).unwrap();
    (store, book)
}

fn catalog(world: &World) -> Catalog {
    open(world).1.known(|catalog, _| catalog.clone())
}

/// A flow that has failed, and stands in the catalog.
fn failed(world: &World) -> String {
    let job = world.call(&["run", "w.yaml", "--json"]).exits(1).job();
    let (store, book) = open(world);
    let (read, _) = journal::replay(&*store, &job, &Plans::default(), |_, _, _| {}).unwrap();
    book.note(activated(&read).unwrap());
    book.note(deactivated(&read).unwrap());
    book.flush().unwrap();
    job
}

#[test]
fn killed_anywhere_while_it_is_archived_nothing_is_lost_and_again_finishes() {
    for place in ["archive-before-rename:1", "archive-kept:1", "archive-noted:1", "archive-folder-removed:1"]
    {
        let world = World::of(FLOW);
        let job = failed(&world);
        let events = world.events();
        let die = [("UNDAUNTED_TEST_DIE", place)];
        let killed = world.call_with(&["archive", &job], &die);
        assert_eq!(killed.code, -9, "{place} is not reached: {killed:?}");
        assert_eq!(world.events(), events, "{place}: it is there until the end");
        let file = world.store().join(format!("archive/{job}.undaunted.jsonl"));
        assert_eq!(file.exists(), place != "archive-before-rename:1");
        let moving = catalog(&world).flows.remove(job.as_str());
        match place {
            "archive-before-rename:1" | "archive-kept:1" => {
                assert_eq!(moving.unwrap().place, FlowLifecycle::Archiving, "{place}");
            }
            _ => assert_eq!(moving, None, "{place}"),
        }

        world.call(&["archive", &job]).exits(0);
        assert_eq!(world.call(&["ls", "--json"]).exits(0).out, "", "{place}");
        assert_eq!(catalog(&world), Catalog::default(), "{place}");
        let left = std::fs::read_dir(file.parent().unwrap()).unwrap().count();
        assert_eq!(left, 1, "{place}: nothing is left beside it");
        assert!(!world.store().join("jobs").join(&job).exists(), "{place}");

        world.call(&["restore", file.to_str().unwrap()]).exits(0);
        assert_eq!(world.events(), events, "{place}");
        let entry = catalog(&world).flows.remove(job.as_str()).unwrap();
        assert_eq!(entry.place, FlowLifecycle::Deactivated, "{place}");
        world.call(&["store", "check"]).exits(0);
    }
}
