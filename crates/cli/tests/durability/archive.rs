//! Archiving killed at every failpoint: the job, its archive file or both exist, and archiving again
//! finishes.

use std::sync::Arc;

use undaunted_engine::catalog::{Catalog, FlowLifecycle};
use undaunted_engine::job::Plans;
use undaunted_runner::catalog::{CatalogHandle, activated, deactivated};
use undaunted_runner::journal;
use undaunted_store::{SqliteStore, Store};

use crate::sandbox::Sandbox;

/// A flow that fails at once, because no server listens at its endpoint.
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

fn open(sandbox: &Sandbox) -> (Arc<dyn Store>, CatalogHandle) {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(sandbox.store()).unwrap());
    let catalog = CatalogHandle::open(Arc::clone(&store)).unwrap();
    (store, catalog)
}

fn catalog(sandbox: &Sandbox) -> Catalog {
    open(sandbox).1.cached(|catalog, _| catalog.clone())
}

/// Runs the flow, which fails, and records it in the catalog.
fn failed(sandbox: &Sandbox) -> String {
    let job = sandbox.run().exits(1).job();
    let (store, catalog) = open(sandbox);
    let (read, _) = journal::replay(&*store, &job, &Plans::default(), |_, _, _| {}).unwrap();
    catalog.note(activated(&read).unwrap());
    catalog.note(deactivated(&read).unwrap());
    catalog.flush().unwrap();
    job
}

#[test]
fn killed_anywhere_during_an_archive_nothing_is_lost_and_a_second_run_finishes() {
    for failpoint in
        ["archive-before-rename:1", "archive-kept:1", "archive-noted:1", "archive-folder-removed:1"]
    {
        let sandbox = Sandbox::of(FLOW);
        let job = failed(&sandbox);
        let events = sandbox.events();
        let die = [("UNDAUNTED_TEST_DIE", failpoint)];
        let killed = sandbox.call_with(&["archive", &job], &die);
        assert_eq!(killed.code, -9, "{failpoint} is not reached: {killed:?}");
        assert_eq!(sandbox.events(), events, "{failpoint}: it is there until the end");
        let file = sandbox.store().join(format!("archive/{job}.undaunted.jsonl"));
        assert_eq!(file.exists(), failpoint != "archive-before-rename:1");
        let moving = catalog(&sandbox).flows.remove(job.as_str());
        match failpoint {
            "archive-before-rename:1" | "archive-kept:1" => {
                assert_eq!(moving.unwrap().lifecycle, FlowLifecycle::Archiving, "{failpoint}");
            }
            _ => assert_eq!(moving, None, "{failpoint}"),
        }

        sandbox.call(&["archive", &job]).exits(0);
        assert_eq!(sandbox.stdout(&["ls", "--json"]), "", "{failpoint}");
        assert_eq!(catalog(&sandbox), Catalog::default(), "{failpoint}");
        let left = std::fs::read_dir(file.parent().unwrap()).unwrap().count();
        assert_eq!(left, 1, "{failpoint}: nothing is left beside it");
        assert!(!sandbox.store().join("jobs").join(&job).exists(), "{failpoint}");

        sandbox.call(&["restore", file.to_str().unwrap()]).exits(0);
        assert_eq!(sandbox.events(), events, "{failpoint}");
        let entry = catalog(&sandbox).flows.remove(job.as_str()).unwrap();
        assert_eq!(entry.lifecycle, FlowLifecycle::Deactivated, "{failpoint}");
        sandbox.call(&["store", "check"]).exits(0);
    }
}
