//! Archiving and restoring jobs, and archives that were damaged.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use undaunted_engine::catalog::{CatalogEvent, FlowLifecycle, FlowStatus};
use undaunted_engine::event::{FlowRun, JobSubmitted, ParentItem};
use undaunted_engine::input::Input;
use undaunted_engine::job::Plans;
use undaunted_policy::Timestamp;
use undaunted_store::{ClaimError, MemoryStore, SqliteStore, Store, Version};

use super::{ArchiveError, archive, file_name, last_line, restore};
use crate::catalog::{activated, deactivated};
use crate::{CatalogHandle, JournalError, LocalFolder, journal};

const FLOW: &str = "
mode: flow
goals: [resize]
steps:
  - {id: resize, type: sync, http: {endpoint: 'http://localhost:1/'}, attributes: {small: {role: output}}}
";

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_nanos((1_700_000_000 + seconds) * 1_000_000_000)
}

/// A folder with a store and a folder for archives.
struct ArchiveFixture {
    folder: tempfile::TempDir,
}

impl ArchiveFixture {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// With a store and a catalog that have the ended flow `wf-1`.
    fn with_ended_flow() -> (Self, MemoryStore, CatalogHandle) {
        let store = MemoryStore::new();
        let catalog_handle = CatalogHandle::open(Arc::new(store.another())).unwrap();
        ended(&store, "wf-1");
        enter(&store, &catalog_handle, "wf-1");
        (Self::new(), store, catalog_handle)
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    fn archives(&self) -> PathBuf {
        self.folder.path().join("archives")
    }

    fn file(&self, job: &str) -> PathBuf {
        self.archives().join(file_name(job).unwrap())
    }

    fn archive(
        &self,
        store: &dyn Store,
        catalog_handle: Option<&CatalogHandle>,
        job: &str,
    ) -> Result<PathBuf, ArchiveError> {
        let local = LocalFolder::new(self.store());
        archive(store, &local, catalog_handle, job, &self.archives())
    }
}

fn submit(store: &dyn Store, job: &str, text: &str) -> journal::ClaimedJob {
    let submitted = JobSubmitted {
        job: job.to_owned(),
        text: text.into(),
        file: "flow.yaml".to_owned(),
        working_dir: "/".to_owned(),
        flow: Some(FlowRun {
            goals: vec!["resize".to_owned()],
            init: "{}".to_owned(),
            labels: vec![("team".to_owned(), "media".to_owned())],
            parent: Some(ParentItem { flow: "outer".to_owned(), ..ParentItem::default() }),
        }),
        ..JobSubmitted::default()
    };
    journal::submit(store, submitted, &Plans::default(), at(0)).unwrap()
}

/// A flow that has ended: it was cancelled before it did anything.
fn ended(store: &dyn Store, job: &str) {
    let claimed = submit(store, job, FLOW);
    journal::record_input(store, claimed, &Input::Cancel, at(5)).unwrap();
}

fn records(store: &dyn Store, job: &str) -> Vec<Vec<u8>> {
    let aggregate = journal::aggregate(job).unwrap();
    store.read(&aggregate, Version::EMPTY).unwrap().map(|record| record.unwrap().1).collect()
}

/// Adds a flow to the catalog, as the event loop does.
fn enter(store: &dyn Store, catalog_handle: &CatalogHandle, job: &str) {
    let read = journal::load(store, job, &Plans::default()).unwrap();
    catalog_handle.note(activated(&read).unwrap());
    catalog_handle.note(deactivated(&read).unwrap());
    catalog_handle.flush().unwrap();
}

fn words(catalog_handle: &CatalogHandle, after: Version) -> Vec<&'static str> {
    catalog_handle.records_after(after).unwrap().into_iter().map(|(_, record)| record.event.word()).collect()
}

#[test]
fn a_flow_is_archived_and_restored_unchanged() {
    let fixture = ArchiveFixture::new();
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&fixture.store()).unwrap());
    let catalog_handle = CatalogHandle::open(Arc::clone(&store)).unwrap();
    ended(&*store, "wf-1");
    enter(&*store, &catalog_handle, "wf-1");
    let before = (records(&*store, "wf-1"), catalog_handle.read(Clone::clone).unwrap());
    let folder = LocalFolder::new(fixture.store()).job("wf-1");
    folder.write("stdin", b"what came in").unwrap();

    let file = fixture.archive(&*store, Some(&catalog_handle), "wf-1").unwrap();
    assert_eq!(file, fixture.file("wf-1"));
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(fs::read_dir(fixture.archives()).unwrap().count(), 1);
    assert!(!folder.path().exists());
    assert!(store.list(journal::FAMILY, "").unwrap().is_empty());
    assert!(catalog_handle.read(|catalog| catalog.flows.is_empty()).unwrap());
    assert_eq!(words(&catalog_handle, Version(2)), ["flow_archiving", "flow_archived"]);
    let archived = catalog_handle.records_after(Version(3)).unwrap().remove(0).1.event;
    let path = file.display().to_string();
    let flow = "wf-1".to_owned();
    assert_eq!(archived, CatalogEvent::FlowArchived { flow, file: path });

    assert_eq!(restore(&*store, Some(&catalog_handle), &file).unwrap(), "wf-1");
    assert!(file.exists(), "the file stays");
    let mut after = (records(&*store, "wf-1"), catalog_handle.read(Clone::clone).unwrap());
    let entry = after.1.flows.values_mut().next().unwrap();
    let expected = before.1.flows.values().next().unwrap();
    assert_eq!(entry.status, FlowStatus::Failed);
    assert!(entry.updated >= expected.updated);
    entry.updated = expected.updated;
    assert_eq!(after, before);

    // Restoring again changes nothing, and archiving again finds the file.
    let version = catalog_handle.cached(|_, version| version);
    assert_eq!(restore(&*store, Some(&catalog_handle), &file).unwrap(), "wf-1");
    assert_eq!(words(&catalog_handle, version), [""; 0]);
    let text = fs::read(&file).unwrap();
    fixture.archive(&*store, Some(&catalog_handle), "wf-1").unwrap();
    assert_eq!(fs::read(&file).unwrap(), text);
    assert!(records(&*store, "wf-1").is_empty());
}

#[test]
fn the_archive_format_is_unchanged_and_readable() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/flow.undaunted.jsonl");
    let (fixture, store, catalog_handle) = ArchiveFixture::with_ended_flow();
    let file = fixture.archive(&store, Some(&catalog_handle), "wf-1").unwrap();
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text, fs::read_to_string(&golden).unwrap_or_default());
    assert_eq!(restore(&store, Some(&catalog_handle), &golden).unwrap(), "wf-1");
    assert!(journal::load(&store, "wf-1", &Plans::default()).unwrap().stage.has_ended());
    let entry = catalog_handle.read(|catalog| catalog.flows["wf-1"].clone()).unwrap();
    assert_eq!((entry.since, entry.ended), (at(0), Some(at(5))));
    assert_eq!(entry.labels["team"], "media");
    assert_eq!(entry.parent.as_deref(), Some("outer"));
}

#[test]
fn a_job_that_is_running_or_has_not_ended_is_not_archived() {
    let fixture = ArchiveFixture::new();
    let store = MemoryStore::new();
    let other = store.another();
    let claimed = submit(&other, "wf-1", FLOW);
    let owned = fixture.archive(&store, None, "wf-1").unwrap_err();
    let is_owned = matches!(owned, ArchiveError::Journal(JournalError::Claim(ClaimError::OwnedBy { .. })));
    assert!(is_owned, "{owned:?}");
    other.unclaim(&claimed.claim).unwrap();
    let running = fixture.archive(&store, None, "wf-1").unwrap_err();
    assert!(matches!(running, ArchiveError::NotEnded { .. }), "{running:?}");
    assert!(!fixture.archives().exists());
    let claimed = journal::claim(&other, "wf-1", &Plans::default()).expect("the claim was released");
    journal::record_input(&other, claimed, &Input::Cancel, at(5)).unwrap();
    fixture.archive(&store, None, "wf-1").unwrap();
    let gone = fixture.archive(&store, None, "wf-1").unwrap_err();
    let not_found = matches!(gone, ArchiveError::Journal(JournalError::NotFound { .. }));
    assert!(not_found, "{gone:?}");
}

#[test]
fn a_job_whose_archive_cannot_be_written_stays_in_the_store() {
    let (fixture, store, catalog_handle) = ArchiveFixture::with_ended_flow();
    fs::write(fixture.archives(), "a file").unwrap();
    let refused = fixture.archive(&store, Some(&catalog_handle), "wf-1").unwrap_err();
    assert!(matches!(refused, ArchiveError::Io { .. }), "{refused:?}");
    assert_eq!(words(&catalog_handle, Version(2)), ["flow_archiving", "flow_deactivated"]);
    let entry = catalog_handle.read(|catalog| catalog.flows["wf-1"].clone()).unwrap();
    assert_eq!((entry.lifecycle, entry.ended), (FlowLifecycle::Deactivated, Some(at(5))));
    fs::remove_file(fixture.archives()).unwrap();
    fixture.archive(&store, Some(&catalog_handle), "wf-1").unwrap();
}

#[test]
fn a_file_that_is_not_an_archive_of_the_job_is_not_replaced() {
    let fixture = ArchiveFixture::new();
    let store = MemoryStore::new();
    ended(&store, "wf-1");
    fs::create_dir(fixture.archives()).unwrap();
    fs::write(fixture.file("wf-1"), "something else").unwrap();
    let refused = fixture.archive(&store, None, "wf-1").unwrap_err();
    assert!(matches!(refused, ArchiveError::InTheWay { .. }), "{refused:?}");
    assert_eq!(records(&store, "wf-1").len(), 3);

    // Another job of the same name.
    let elsewhere = MemoryStore::new();
    let claimed = submit(&elsewhere, "wf-1", &format!("{FLOW}# another\n"));
    journal::record_input(&elsewhere, claimed, &Input::Cancel, at(6)).unwrap();
    fs::remove_file(fixture.file("wf-1")).unwrap();
    fixture.archive(&elsewhere, None, "wf-1").unwrap();
    let refused = fixture.archive(&store, None, "wf-1").unwrap_err();
    assert!(matches!(refused, ArchiveError::InTheWay { .. }), "{refused:?}");
    let refused = restore(&store, None, &fixture.file("wf-1")).unwrap_err();
    assert!(matches!(refused, ArchiveError::Exists { .. }), "{refused:?}");
    assert_eq!(records(&store, "wf-1").len(), 3);
}

#[test]
fn an_archive_that_is_older_than_the_job_is_replaced() {
    let (fixture, store, catalog_handle) = ArchiveFixture::with_ended_flow();
    let file = fixture.archive(&store, Some(&catalog_handle), "wf-1").unwrap();
    let older = fs::read_to_string(&file).unwrap();
    restore(&store, None, &file).unwrap();
    // One more record, after which the job has still ended.
    let claimed = journal::claim(&store, "wf-1", &Plans::default()).unwrap();
    let after = claimed.version;
    let same = records(&store, "wf-1").pop().unwrap();
    let more =
        undaunted_store::Append::new(claimed.claim.aggregate.clone(), after, claimed.claim.epoch, vec![same]);
    store.append(vec![more]).unwrap();
    store.unclaim(&claimed.claim).unwrap();
    let longer = records(&store, "wf-1");
    let refused = restore(&store, None, &file).unwrap_err();
    assert!(matches!(refused, ArchiveError::Exists { .. }), "{refused:?}");
    assert_eq!(fixture.archive(&store, Some(&catalog_handle), "wf-1").unwrap(), file);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.lines().count() > older.lines().count());
    restore(&store, Some(&catalog_handle), &file).unwrap();
    assert_eq!(records(&store, "wf-1"), longer);
}

#[test]
fn a_sub_flow_of_an_unfinished_flow_is_not_archived() {
    let fixture = ArchiveFixture::new();
    let store = MemoryStore::new();
    ended(&store, "wf-1");
    let outer = submit(&store, "outer", FLOW);
    let refused = fixture.archive(&store, None, "wf-1").unwrap_err();
    assert!(matches!(&refused, ArchiveError::Awaited { parent, .. } if parent == "outer"), "{refused:?}");
    journal::record_input(&store, outer, &Input::Cancel, at(6)).unwrap();
    fixture.archive(&store, None, "wf-1").unwrap();
}

/// Restores a damaged file, which writes nothing; returns the line and the error.
fn refused(fixture: &ArchiveFixture, text: &[u8]) -> (u64, String) {
    let file = fixture.folder.path().join("unfit");
    fs::write(&file, text).unwrap();
    let store = MemoryStore::new();
    let catalog_handle = CatalogHandle::open(Arc::new(store.another())).unwrap();
    let error = match restore(&store, Some(&catalog_handle), &file) {
        Ok(job) => panic!("{job} was restored from {}", String::from_utf8_lossy(text)),
        Err(error) => error,
    };
    assert_eq!(store.pulse().unwrap(), 0, "nothing is written");
    match error {
        ArchiveError::Unfit { line, what, .. } => (line, what),
        ArchiveError::Newer { .. } | ArchiveError::NoName { .. } => (1, error.to_string()),
        other => panic!("{other:?}"),
    }
}

fn written(fixture: &ArchiveFixture) -> String {
    let store = MemoryStore::new();
    ended(&store, "wf-1");
    let file = fixture.archive(&store, None, "wf-1").unwrap();
    fs::read_to_string(file).unwrap()
}

/// The same lines with the checksum they should have.
fn sealed(lines: &[String]) -> String {
    let body = lines.join("\n") + "\n";
    let count = u64::try_from(lines.len()).unwrap() - 1;
    let sum = crc32fast::hash(body.as_bytes());
    format!("{body}{}\n", last_line(count, sum))
}

#[test]
fn an_archive_that_was_cut_anywhere_is_refused() {
    let fixture = ArchiveFixture::new();
    let text = written(&fixture);
    let lines = u64::try_from(text.lines().count()).unwrap();
    for length in 0..text.len() {
        let (line, what) = refused(&fixture, &text.as_bytes()[..length]);
        assert!((1..=lines).contains(&line), "{length}: {line}: {what}");
    }
}

#[test]
fn an_archive_of_which_any_byte_was_altered_is_refused() {
    let fixture = ArchiveFixture::new();
    let text = written(&fixture);
    for index in 0..text.len() {
        let mut altered = text.clone().into_bytes();
        altered[index] ^= 1;
        refused(&fixture, &altered);
    }
    let (line, what) = refused(&fixture, format!("{text}{{}}\n").as_bytes());
    assert_eq!((line, what.as_str()), (5, "the file continues after its last line"));
}

#[test]
fn the_error_of_a_damaged_archive_names_the_line() {
    let fixture = ArchiveFixture::new();
    let text = written(&fixture);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.pop();
    assert_eq!(sealed(&lines), text);
    let with = |line: usize, from: &str, to: &str| {
        let mut lines = lines.clone();
        assert!(lines[line].contains(from), "{}", lines[line]);
        lines[line] = lines[line].replacen(from, to, 1);
        refused(&fixture, sealed(&lines).as_bytes())
    };
    let newer = with(0, "\"version\":1", "\"version\":2").1;
    assert!(newer.contains("version 2; this release reads versions up to 1"), "{newer}");
    assert_eq!(with(0, "\"version\":1", "\"version\":0").0, 1);
    assert_eq!(with(0, "wf-1", "../wf-1").0, 1);
    assert_eq!(with(0, "\"archive\"", "\"report\""), (1, "not an archive of a job".to_owned()));
    let other = (2, "the record belongs to a different job than the one named in line 1".to_owned());
    assert_eq!(with(0, "wf-1", "wf-2"), other);
    assert_eq!(with(2, "\"seq\":2", "\"seq\":3").0, 3);
    assert_eq!(with(2, "job_", "item_").0, 3);
    assert_eq!(with(2, "\"record\":\"01", "\"record\":\"02").0, 3);
    assert_eq!(with(2, "\"record\":\"01", "\"record\":\"0").0, 3);
    assert_eq!(with(2, "{", "").0, 3);

    // Cut at a line, with a valid checksum: the job is incomplete.
    let mut shorter = lines.clone();
    shorter.pop();
    let (line, what) = refused(&fixture, sealed(&shorter).as_bytes());
    assert_eq!((line, what.as_str()), (4, "record 3 is missing"));
    shorter[0] = shorter[0].replacen("\"records\":3", "\"records\":2", 1);
    let (line, what) = refused(&fixture, sealed(&shorter).as_bytes());
    assert_eq!((line, what.as_str()), (4, "the job of this archive has not ended"));
    assert_eq!(refused(&fixture, b"").0, 1);
    assert_eq!(refused(&fixture, b"- shell: 'true'\n").0, 1);
}

#[test]
fn a_job_name_that_leaves_the_folder_is_refused() {
    let store = MemoryStore::new();
    for job in ["", ".", "..", "../x", "a/b", "a\0b"] {
        let refused = ArchiveFixture::new().archive(&store, None, job).unwrap_err();
        assert!(matches!(refused, ArchiveError::NoName { .. }), "{refused:?}");
    }
}
