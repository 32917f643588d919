//! Measures the SQLite store on this machine and this disk.
//!
//! `cargo run --release -p undaunted-store --example measure [FOLDER]`
//!
//! It prints figures without judging them. CPU time is that of the whole process, from `/proc/self/stat`, so
//! that a slow disk or a busy machine can be told from a slow store.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use undaunted_store::{AggregateId, Append, Epoch, SqliteStore, Store, Version};

type MeasureResult = Result<(), Box<dyn Error + Send + Sync>>;

const RECORD: usize = 60;

fn main() -> MeasureResult {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| std::env::temp_dir().join("undaunted-measure"));
    println!("{}, records of {RECORD} bytes", folder.display());
    raw(&folder)?;
    for threads in [1, 8, 64] {
        fresh(&folder, |store| {
            alone(store, threads);
            Ok(())
        })?;
    }
    fresh(&folder, |store| in_flight(store, 64, 1))?;
    fresh(&folder, |store| in_flight(store, 1024, 1))?;
    fresh(&folder, |store| in_flight(store, 1, 1024))?;
    fresh(&folder, |store| in_flight(store, 4, 1024))?;
    for rows in [1024, 16, 1] {
        fresh(&folder, |store| load(store, 1_000_000, rows))?;
    }
    claims(&folder)?;
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

/// The speed of the disk, for comparison.
fn raw(folder: &Path) -> MeasureResult {
    use std::io::Write as _;
    std::fs::create_dir_all(folder)?;
    let path = folder.join("raw");
    let mut file = std::fs::File::create(&path)?;
    let mut count = 0_u32;
    let watch = Stopwatch::start();
    while watch.began.elapsed() < Duration::from_secs(1) {
        file.write_all(&[7; RECORD])?;
        file.sync_data()?;
        count = count.saturating_add(1);
    }
    watch.say("a file: append and sync", count);
    std::fs::remove_file(path)?;
    Ok(())
}

fn fresh(folder: &Path, measure: impl FnOnce(&SqliteStore) -> MeasureResult) -> MeasureResult {
    let path = folder.join("store");
    let _ = std::fs::remove_dir_all(&path);
    measure(&SqliteStore::open(&path)?)
}

fn append(id: &str, at: Version, records: usize) -> Append {
    let records = vec![vec![7; RECORD]; records];
    // No id in this program is empty.
    let aggregate = AggregateId::new("job", id).unwrap_or_else(|error| unreachable!("{error}"));
    Append::new(aggregate, at, Epoch::UNCLAIMED, records)
}

/// Several threads, each of which waits for every append.
fn alone(store: &SqliteStore, threads: u32) {
    let watch = Stopwatch::start();
    let counts = thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn(move || {
                    let (id, mut at) = (thread.to_string(), Version::EMPTY);
                    while watch.began.elapsed() < Duration::from_secs(2) {
                        if store.append(vec![append(&id, at, 1)]).is_err() {
                            break;
                        }
                        at = at.next();
                    }
                    u32::try_from(at.0).unwrap_or(u32::MAX)
                })
            })
            .collect();
        let counts = handles.into_iter().map(|handle| handle.join().unwrap_or(0));
        counts.fold(0_u32, u32::saturating_add)
    });
    watch.say(&format!("{threads} threads, each waits: appends"), counts);
}

/// One thread with many appends in flight, to one job.
fn in_flight(store: &SqliteStore, most: usize, records: usize) -> MeasureResult {
    let (sender, receiver) = mpsc::channel();
    let watch = Stopwatch::start();
    let (mut at, mut under_way, mut done) = (Version::EMPTY, 0_usize, 0_u32);
    while watch.began.elapsed() < Duration::from_secs(2) || under_way > 0 {
        while under_way < most && watch.began.elapsed() < Duration::from_secs(2) {
            let sender = sender.clone();
            store.submit(
                vec![append("a", at, records)],
                Box::new(move |result| {
                    let _ = sender.send(result);
                }),
            );
            at = at.after(records);
            under_way = under_way.saturating_add(1);
        }
        receiver.recv()??;
        under_way = under_way.saturating_sub(1);
        done = done.saturating_add(u32::try_from(records)?);
    }
    watch.say(&format!("1 thread, {most} under way, {records} a batch: records"), done);
    Ok(())
}

/// Reading a whole journal, as recovery does.
fn load(store: &SqliteStore, records: usize, batch: usize) -> MeasureResult {
    let (sender, receiver) = mpsc::sync_channel(1);
    let mut at = Version::EMPTY;
    let last = Version::EMPTY.after(records);
    while at < last {
        let sender = sender.clone();
        store.submit(
            vec![append("a", at, batch)],
            Box::new(move |result| {
                let _ = sender.try_send(result);
            }),
        );
        at = at.after(batch);
    }
    // Committed after all the others.
    store.append(vec![append("a", at, 1)])?;
    receiver.recv()??;
    let watch = Stopwatch::start();
    let job = append("a", at, 0).aggregate;
    let mut count = 0_u32;
    for record in store.read(&job, Version::EMPTY)? {
        record?;
        count = count.saturating_add(1);
    }
    watch.say(&format!("load, written in batches of {batch}: records"), count);
    let bytes = std::fs::metadata(store.database())?.len();
    println!("    size of the database: {} MiB", bytes >> 20);
    Ok(())
}

fn claims(folder: &Path) -> MeasureResult {
    let path = folder.join("store");
    let _ = std::fs::remove_dir_all(&path);
    drop(SqliteStore::open(&path)?);
    let watch = Stopwatch::start();
    for _ in 0..100 {
        drop(SqliteStore::open(&path)?);
    }
    watch.say("opened and closed", 100);
    let store = SqliteStore::open(&path)?;
    let watch = Stopwatch::start();
    for n in 0..500 {
        store.claim(&append(&n.to_string(), Version::EMPTY, 0).aggregate)?;
    }
    watch.say("claimed", 500);
    Ok(())
}

#[derive(Clone, Copy)]
struct Stopwatch {
    began: Instant,
    processor: f64,
}

impl Stopwatch {
    fn start() -> Self {
        Self { began: Instant::now(), processor: processor() }
    }

    fn say(self, what: &str, count: u32) {
        let took = self.began.elapsed().as_secs_f64();
        let count = f64::from(count.max(1));
        let processor = (processor() - self.processor) / count * 1e6;
        let rate = count / took;
        println!("{what:<52} {rate:>10.0}/s  {processor:>8.2} µs of CPU time each  ({took:.2} s)");
    }
}

/// The CPU time that this process has used, in seconds, with a resolution of 10 ms.
fn processor() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut fields = after_name.split_whitespace().skip(11);
    let mut ticks = || fields.next().and_then(|field| field.parse::<f64>().ok());
    (ticks().unwrap_or(0.0) + ticks().unwrap_or(0.0)) / 100.0
}
