//! Times the reader behind the commands, in process.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use undaunted_engine::id::{ItemId, StepId};
use undaunted_engine::job::Plans;
use undaunted_runner::folder::LocalFolder;
use undaunted_runner::journal::JournalError;
use undaunted_runner::reader::JobReader;
use undaunted_store::SqliteStore;

use crate::filled::JOB;

/// The questions to a reader, and how long the answers took.
pub(crate) type Answers = Vec<(&'static str, Duration)>;

/// Times a reader of the job in a folder, whose index exists.
pub(crate) fn answers(folder: &Path) -> Result<Answers, Box<dyn Error>> {
    let mut answers = Vec::new();
    let mut note = |name, began: Instant| answers.push((name, began.elapsed()));
    let began = Instant::now();
    let store = SqliteStore::open(folder)?;
    note("open the store", began);
    let local = LocalFolder::new(folder).job(JOB);
    let plans = Plans::default();
    let open = || JobReader::open(&store, &local, JOB, &plans);
    let began = Instant::now();
    let mut reader = open()?;
    note("open the job", began);
    let items = reader.job.steps.first().map_or(0, |step| step.items.len());
    for (name, many) in
        [("history of 1 item", 1), ("histories of 8 items", 8), ("histories of 10 000 items", 10_000)]
    {
        let wanted = spread(items, many);
        let began = Instant::now();
        let found = reader.histories(wanted.clone())?;
        note(name, began);
        if found.len() != wanted.len() {
            return Err(format!("{name}: found {}", found.len()).into());
        }
    }
    for (name, typed, found) in [
        ("find an item by its name", "item-500", 1),
        ("find items by a prefix of their names", "item-50", 11),
        ("find no item", "nothing", 0),
    ] {
        let mut reader = open()?;
        let began = Instant::now();
        let items = reader.find(typed)?;
        note(name, began);
        if typed != "item-50" && items.len() != found {
            return Err(format!("{name}: found {}", items.len()).into());
        }
    }
    let mut reader = open()?;
    let began = Instant::now();
    let stopped = reader.each_attempt(|_, _| Err(Stop::Here));
    note("the first attempt", began);
    if let Err(Stop::Journal(error)) = stopped {
        return Err(error.into());
    }
    let began = Instant::now();
    reader.each_attempt(|_, _| Ok::<_, JournalError>(()))?;
    note("every attempt", began);
    Ok(answers)
}

/// Why reading stopped.
enum Stop {
    Here,
    Journal(JournalError),
}

impl From<JournalError> for Stop {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

/// Items at equal distances.
fn spread(items: u32, many: u32) -> BTreeSet<ItemId> {
    let every = (items / many).max(1);
    let indexes = (0..items).step_by(usize::try_from(every).unwrap_or(1));
    let many = usize::try_from(many).unwrap_or(usize::MAX);
    indexes.take(many).map(|index| StepId(0).item(index)).collect()
}
