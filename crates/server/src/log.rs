//! The log: one JSON object a line, on standard error.
//!
//! Only writes. What is written about the records of jobs is computed in `undaunted_engine::view::log`.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use undaunted_engine::breaker::BreakerChange;
use undaunted_engine::event::Record;
use undaunted_engine::job::Job;
use undaunted_engine::view::log::{
    LogBody, LogLevel, LogRecord, is_above_debug, records_of, transition_record,
};
use undaunted_policy::Timestamp;
use undaunted_runner::clock::Clock;
use undaunted_runner::drive::StoreOutage;

const QUEUE_LIMIT: usize = 10_000;

/// Writes log records to standard error, on a thread of its own. Callers do not wait for a slow reader of
/// standard error; lines that do not fit in the queue are left out, and counted in a record.
#[derive(Clone, Debug)]
pub struct LogWriter {
    level: LogLevel,
    lines: SyncSender<LogLine>,
    left_out: Arc<AtomicU64>,
    /// When each breaker changed last: every job that uses it reports the change, and it is logged once.
    turned: Arc<Mutex<BTreeMap<String, Timestamp>>>,
}

#[derive(Debug)]
enum LogLine {
    Text(String),
    /// Signals that all lines before it are written.
    End(Sender<()>),
}

impl LogWriter {
    /// Writes records of this level and those that matter more.
    pub fn of(level: LogLevel) -> Self {
        let (lines, written) = sync_channel(QUEUE_LIMIT);
        let left_out = Arc::new(AtomicU64::new(0));
        let missing = Arc::clone(&left_out);
        let _ = std::thread::spawn(move || {
            for line in written {
                match line {
                    // A closed standard error does not stop the server.
                    LogLine::Text(text) => drop(std::io::stderr().lock().write_all(text.as_bytes())),
                    LogLine::End(done) => {
                        let _ = done.send(());
                    }
                }
                let many = missing.swap(0, Ordering::AcqRel);
                if many > 0 {
                    let text = format!(
                        "{{\"level\":\"warn\",\"message\":\"log records were dropped\",\"records\":{many}}}\n"
                    );
                    drop(std::io::stderr().lock().write_all(text.as_bytes()));
                }
            }
        });
        Self { level, lines, left_out, turned: Arc::default() }
    }

    pub fn write(&self, records: &[LogRecord]) {
        for record in records.iter().filter(|it| it.level <= self.level) {
            let line = LogLine::Text(record.line() + "\n");
            if self.lines.try_send(line).is_err() {
                let _ = self.left_out.fetch_add(1, Ordering::AcqRel);
            }
        }
    }

    /// Waits until the queue is written, for at most a second.
    pub fn finish(&self) {
        const PATIENCE: Duration = Duration::from_secs(1);
        let (done, written) = channel();
        if self.lines.try_send(LogLine::End(done)).is_ok() {
            // Standard error may be stuck.
            let _ = written.recv_timeout(PATIENCE);
        }
    }

    pub fn turned(&self, breaker: &str, change: &BreakerChange) {
        let mut turned = self.turned.lock().unwrap_or_else(PoisonError::into_inner);
        let last = turned.get(breaker).copied();
        let _ = turned.insert(breaker.to_owned(), last.unwrap_or_default().max(change.at));
        drop(turned);
        // A job of this process may have reported it before it was read from the store.
        if last.is_none_or(|last| last < change.at) {
            self.write(transition_record(breaker, change).as_slice());
        }
    }

    pub fn outage(&self, outage: &StoreOutage<'_>) {
        let level = match outage {
            StoreOutage::Begins(_) => LogLevel::Error,
            StoreOutage::Ends(_) => LogLevel::Info,
        };
        self.write(&[LogRecord {
            at: Clock::set().now(),
            level,
            what: LogBody::Message(outage.to_string()),
            fields: Vec::new(),
        }]);
    }

    pub fn job_record(&self, job: &Job, record: &Record) {
        if self.level >= LogLevel::Debug || is_above_debug(&record.event) {
            self.write(&records_of(job, record));
        }
    }
}
