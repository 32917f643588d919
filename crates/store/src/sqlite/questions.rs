//! The thread that answers the questions of an event loop, so that the loop never waits for the database.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::{Broken, JournalReader, OwnerFile, ReadConnections, RecordCodec, heads, owners};
use crate::{AggregateId, Findings, OnFindings, Question, RequestId, StoreError, StoreRequest, Version};

/// A handle on the thread, which ends when the handle is dropped.
pub(super) struct QuestionThread {
    questions: Option<Sender<(Question, OnFindings)>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread needs to answer.
pub(super) struct Responder {
    pub(super) readers: Arc<ReadConnections>,
    pub(super) owners: PathBuf,
    pub(super) owner_file: Option<Arc<OwnerFile>>,
    pub(super) broken: Broken,
}

impl QuestionThread {
    pub(super) fn start(source: Responder) -> std::io::Result<Self> {
        let (questions, receiver) = channel();
        let thread = std::thread::Builder::new()
            .name("store-questions".to_owned())
            .spawn(move || source.answer_all(&receiver))?;
        Ok(Self { questions: Some(questions), thread: Some(thread) })
    }

    pub(super) fn ask(&self, question: Question, done: OnFindings) {
        let sent = self.questions.as_ref().map(|to| to.send((question, done)));
        if let Some(Err(unsent)) = sent {
            (unsent.0.1)(Err(StoreError::closed()));
        }
    }
}

impl Drop for QuestionThread {
    fn drop(&mut self) {
        self.questions = None;
        if let Some(thread) = self.thread.take() {
            // The thread has then closed its connection. A panic was reported where it happened.
            drop(thread.join());
        }
    }
}

impl Responder {
    fn answer_all(self, receiver: &Receiver<(Question, OnFindings)>) {
        // `data_version` is comparable only within one connection.
        let mut own = None;
        for (question, done) in receiver {
            done(self.answer(&mut own, &question));
        }
    }

    fn answer(&self, own: &mut Option<Connection>, question: &Question) -> Result<Findings, StoreError> {
        if let Some(error) = self.broken.get() {
            return Err(error.clone());
        }
        let connection = match own.take() {
            Some(connection) => connection,
            None => self.readers.open()?,
        };
        // A handle without an owner file owns nothing.
        let owner = self.owner_file.as_deref().map_or("", OwnerFile::name);
        let found = found(own.insert(connection), question, owner);
        let (mut findings, advanced, claimed_by) = self.readers.classified(found)?;
        for (aggregate, number, after) in advanced {
            let read = JournalReader::new(&self.readers, aggregate.clone(), number, after);
            let records = read.and_then(Iterator::collect);
            findings.records.insert(aggregate, records);
        }
        for aggregate in &question.awaits {
            let is_living = match claimed_by.get(aggregate) {
                Some(owner) => owners::living_owner(&self.owners, owner)?.is_some(),
                None => false,
            };
            if !is_living {
                findings.unowned.insert(aggregate.clone());
            }
        }
        Ok(findings)
    }
}

/// Followed journals with new records: the number of the aggregate, and the last version known to the caller.
type Advanced = Vec<(AggregateId, i64, Version)>;
/// Awaited aggregates and the names of their owners, dead or alive.
type Owners = BTreeMap<AggregateId, String>;

/// The part of the answer that comes from the database, read in one transaction.
fn found(
    connection: &Connection,
    question: &Question,
    owner_file: &str,
) -> rusqlite::Result<(Findings, Advanced, Owners)> {
    let transaction = connection.unchecked_transaction()?;
    let number = heads::data_version(&transaction)?;
    let mut findings = Findings { pulse: u64::from_ne_bytes(number.to_ne_bytes()), ..Findings::default() };
    let mut advanced = Vec::new();
    if question.since != Some(findings.pulse) {
        findings.requests = requests_to(&transaction, owner_file)?;
        for (aggregate, after) in &question.follows {
            let known = heads::find(&transaction, aggregate)?;
            if let Some(known) = known.filter(|known| known.head.version > *after) {
                advanced.push((aggregate.clone(), known.number, *after));
            }
        }
    }
    let mut owners = Owners::new();
    for aggregate in &question.awaits {
        if let Some(owner) = owners::owner_name(&transaction, aggregate)? {
            owners.insert(aggregate.clone(), owner);
        }
    }
    Ok((findings, advanced, owners))
}

fn requests_to(
    connection: &Connection,
    owner_file: &str,
) -> rusqlite::Result<BTreeMap<AggregateId, Result<Vec<StoreRequest>, StoreError>>> {
    // The cross join starts with the requests, of which there are usually none.
    let mut select = connection.prepare_cached(
        "SELECT family, aggregates.id, requests.id, body FROM requests CROSS JOIN aggregates
         WHERE number = aggregate AND owner = ?1 ORDER BY requests.id",
    )?;
    let mut rows = select.query([owner_file])?;
    let mut found: BTreeMap<AggregateId, Vec<(i64, Vec<u8>)>> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let (family, id): (String, String) = (row.get(0)?, row.get(1)?);
        if let Ok(aggregate) = AggregateId::new(family, id) {
            found.entry(aggregate).or_default().push((row.get(2)?, row.get(3)?));
        }
    }
    let decode_requests = found.into_iter().map(|(aggregate, rows)| {
        let requests = decode_requests(&aggregate, rows);
        (aggregate, requests)
    });
    Ok(decode_requests.collect())
}

pub(super) fn decode_requests(
    aggregate: &AggregateId,
    rows: Vec<(i64, Vec<u8>)>,
) -> Result<Vec<StoreRequest>, StoreError> {
    let codec = RecordCodec::of(aggregate);
    let requests = rows.into_iter().map(|(id, body)| {
        let id = u64::try_from(id).unwrap_or(0);
        match codec.read(&mut body.as_slice(), Version(id)) {
            Ok(bytes) => Ok(StoreRequest { id: RequestId(id), bytes: bytes.to_vec() }),
            Err(what) => {
                Err(StoreError::DamagedRequest { aggregate: aggregate.clone(), request: RequestId(id), what })
            }
        }
    });
    requests.collect()
}
