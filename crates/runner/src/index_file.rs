//! The index of a job in a file beside its spool.
//!
//! With it, a process that only shows a job does not have to read the whole journal. It holds the state of
//! the job without the names and values of its items, the projection, and which record is about which item:
//! about twenty bytes an item in all. Everything in it is derived from the journal, so a file that is
//! missing, damaged, or of another release or job only costs time.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use minicbor::{Decode, Encode};
use undaunted_engine::event::codec;
use undaunted_engine::job::{Job, Plans};
use undaunted_engine::view::Projection;
use undaunted_store::Version;

/// The first bytes of the file; the last letter is the format.
const MARK: &[u8; 8] = b"undidx 3";
/// Mark, length of the header, checksum of the header.
const BEGIN: usize = 16;

/// Sections follow the header in this order: job, projection, names, records.
#[derive(Encode, Decode)]
struct IndexHeader {
    #[n(0)]
    job: String,
    /// The version of the last record it covers.
    #[n(1)]
    version: u64,
    /// That record, as it is in the journal.
    #[n(2)]
    #[cbor(with = "minicbor::bytes")]
    last: Vec<u8>,
    /// Length and checksum of each section.
    #[n(3)]
    sections: [(u64, u32); 4],
}
pub(crate) struct SavedIndex {
    pub(crate) version: Version,
    pub(crate) last: Vec<u8>,
    job: Vec<u8>,
    pub(crate) projection: Projection,
}

impl SavedIndex {
    /// The job, without the names and values of the items of its maps.
    pub(crate) fn job(&self, plans: &Plans) -> Option<Job> {
        Job::restore(&self.job, plans).ok()
    }
}

/// Whether a job gets an index. A flow has few items, and the items of an imported state are found by their
/// names while records are applied.
pub(crate) fn is_for(job: &Job) -> bool {
    job.workflow().flow.is_none() && !job.needs_names()
}

pub(crate) fn bytes(job: &Job, projection: &Projection, version: Version, last: &[u8]) -> Vec<u8> {
    let (state, rest) = (job.snapshot_without_inputs(), projection.save());
    let index = &projection.index;
    let sections = [&state, &rest, &index.names.0, &index.records.0];
    let header = IndexHeader {
        job: job.id().to_owned(),
        version: version.0,
        last: last.to_vec(),
        sections: sections.map(|section| {
            let length = u64::try_from(section.len()).unwrap_or(u64::MAX);
            (length, crc32fast::hash(section))
        }),
    };
    let mut head = Vec::new();
    codec::put(&header, &mut head);
    let length = u32::try_from(head.len()).unwrap_or(u32::MAX);
    let sum = sections.iter().map(|it| it.len()).sum::<usize>();
    let mut bytes = Vec::with_capacity(sum.saturating_add(head.len()).saturating_add(BEGIN));
    bytes.extend_from_slice(MARK);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&crc32fast::hash(&head).to_le_bytes());
    bytes.extend_from_slice(&head);
    for section in sections {
        bytes.extend_from_slice(section);
    }
    bytes
}

/// `None` if there is no usable index of this job.
pub(crate) fn read(path: &Path, job: &str) -> Option<SavedIndex> {
    let file = File::open(path).ok()?;
    let mut begin = [0; BEGIN];
    file.read_exact_at(&mut begin, 0).ok()?;
    let rest = begin.strip_prefix(MARK)?;
    let (length, sum) = rest.split_first_chunk::<4>()?;
    let mut at = u64::try_from(BEGIN).ok()?;
    let head =
        section(&file, &mut at, u32::from_le_bytes(*length).into(), u32::from_le_bytes(sum.try_into().ok()?));
    let header: IndexHeader = codec::read(&head.ok()?).ok()?;
    if header.job != job {
        return None;
    }
    let [state, rest, names, records] =
        header.sections.map(|(length, sum)| section(&file, &mut at, length, sum));
    let projection = Projection::restore(&rest.ok()?, names.ok()?, records.ok()?).ok()?;
    let covers = projection.index.records.len() == header.version;
    covers.then_some(SavedIndex {
        version: Version(header.version),
        last: header.last,
        job: state.ok()?,
        projection,
    })
}

/// The section at `at`, which is moved behind it.
fn section(file: &File, at: &mut u64, length: u64, sum: u32) -> io::Result<Vec<u8>> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let end = at.saturating_add(length);
    // A damaged length must not allocate more than the file has.
    if end > file.metadata()?.len() {
        return Err(invalid());
    }
    let mut bytes = vec![0; usize::try_from(length).map_err(|_| invalid())?];
    file.read_exact_at(&mut bytes, *at)?;
    *at = end;
    if crc32fast::hash(&bytes) == sum { Ok(bytes) } else { Err(invalid()) }
}
