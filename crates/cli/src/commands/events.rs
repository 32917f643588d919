//! `undaunted events`: the events of a job, merged with those of its breakers.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufWriter, Write};
use std::time::Duration;

use clap::Args;
use undaunted_engine::breaker::{BreakerChange, BreakerJournal};
use undaunted_engine::event::{BreakerEvent, Event, ItemEvent, JobEvent, Record};
use undaunted_engine::job::Job;
use undaunted_engine::view::{self, EventView};
use undaunted_policy::Timestamp;
use undaunted_runner::{breakers, journal};
use undaunted_store::Version;

use crate::screen::events;
use crate::{CommandError, Exit, Jobs, Result};

const POLL: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted events @last
  undaunted events 3f9a --json | jq 'select(.type == \"retry_scheduled\")'
  undaunted events @last --follow")]
pub(crate) struct EventsArgs {
    /// Id of the job, a unique prefix, or @last
    job: String,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,

    /// Keep printing new events until the job ends
    #[arg(long)]
    follow: bool,
}

pub(crate) fn run(jobs: &Jobs, args: &EventsArgs) -> Result<Exit> {
    let id = jobs.find(&args.job)?;
    let aggregate = journal::aggregate(&id)?;
    let mut job: Option<Job> = None;
    let mut last = Version::default();
    let mut pulse = None;
    let mut breaker_events = BreakerEvents::default();
    loop {
        let now = jobs.store.pulse()?;
        if pulse != Some(now) {
            pulse = Some(now);
            let mut out = BufWriter::new(io::stdout().lock());
            let records = jobs.store.read(&aggregate, last);
            breaker_events.refresh(jobs)?;
            for read in records? {
                // The records before a damaged one are printed, then the error.
                let shown = read
                    .map_err(CommandError::from)
                    .and_then(|(version, bytes)| Ok((version, journal::decode(&id, version, &bytes)?)));
                let (version, record) = match shown {
                    Ok(shown) => shown,
                    Err(refused) => {
                        out.flush()?;
                        return Err(refused);
                    }
                };
                last = version;
                let job = match &mut job {
                    Some(job) => {
                        job.apply(&record);
                        job
                    }
                    None => job.insert(Job::begin(&record).map_err(|why| {
                        let job = id.clone();
                        CommandError::from(journal::JournalError::Job { job, why })
                    })?),
                };
                breaker_events.note(jobs, job, &record)?;
                for event in breaker_events.before(version.0, record.at) {
                    print(&mut out, &event, args.json)?;
                }
                print(&mut out, &view::event(job, version.0, &record), args.json)?;
            }
            if job.as_ref().is_some_and(|job| !job.stage.has_ended()) {
                for event in breaker_events.before(0, Timestamp::MAX) {
                    print(&mut out, &event, args.json)?;
                }
            }
            out.flush()?;
        }
        let ended = job.as_ref().is_none_or(|job| job.stage.has_ended());
        if !args.follow || ended {
            return Ok(Exit::Done);
        }
        std::thread::sleep(POLL);
    }
}

fn print(out: &mut impl Write, event: &EventView, as_json: bool) -> io::Result<()> {
    if as_json {
        serde_json::to_writer(&mut *out, event)?;
        writeln!(out)
    } else {
        events::line(out, event)
    }
}

/// The changes of the breakers that a job uses. A change is recorded once, in the journal of the breaker, and
/// printed among the events of every job that uses it.
#[derive(Default)]
struct BreakerEvents {
    /// The breakers, each with the last version read.
    breakers: BTreeMap<String, u64>,
    /// Changes by others that are not printed yet, in order of time.
    pending: BTreeMap<(Timestamp, u64), (String, BreakerChange)>,
    /// Changes by the job itself, keyed by the last record of their commit.
    own: BTreeMap<u64, Vec<(String, BreakerChange)>>,
    job: String,
    since: Timestamp,
    /// The times of changes recorded in the job's own journal, as earlier releases did.
    recorded: BTreeSet<Timestamp>,
    count: u64,
}

impl BreakerEvents {
    /// Reads the breakers that this record mentions for the first time.
    fn note(&mut self, jobs: &Jobs, job: &Job, record: &Record) -> Result<()> {
        let name = match &record.event {
            Event::Job(JobEvent::Submitted(_)) => {
                self.since = record.at;
                job.id().clone_into(&mut self.job);
                for name in job.plan().breakers().into_keys() {
                    self.add(jobs, &name)?;
                }
                return Ok(());
            }
            Event::Item(ItemEvent::AttemptStarted(started)) => {
                started.pass.as_ref().map(|pass| &pass.breaker)
            }
            Event::Item(ItemEvent::Held(held)) => Some(&held.breaker),
            Event::Breaker(
                BreakerEvent::Opened(_) | BreakerEvent::HalfOpened { .. } | BreakerEvent::Closed { .. },
            ) => {
                self.recorded.insert(record.at);
                return Ok(());
            }
            Event::Job(_)
            | Event::Step(_)
            | Event::Item(_)
            | Event::Breaker(BreakerEvent::Configured { .. }) => None,
        };
        match name {
            Some(name) => self.add(jobs, job.texts.read(name)),
            None => Ok(()),
        }
    }

    fn add(&mut self, jobs: &Jobs, name: &str) -> Result<()> {
        if self.breakers.contains_key(name) {
            return Ok(());
        }
        self.breakers.insert(name.to_owned(), 0);
        self.read(jobs, name)
    }

    fn refresh(&mut self, jobs: &Jobs) -> Result<()> {
        let names: Vec<String> = self.breakers.keys().cloned().collect();
        names.iter().try_for_each(|name| self.read(jobs, name))
    }

    fn read(&mut self, jobs: &Jobs, name: &str) -> Result<()> {
        let found = breakers::read(&*jobs.store, name)?;
        let BreakerJournal { version, changes, .. } = found.unwrap_or_default();
        let seen = self.breakers.insert(name.to_owned(), version).unwrap_or_default();
        for (at, change) in changes {
            let is_new = at.map_or(seen == 0, |at| at > seen);
            if !is_new || change.at < self.since {
                continue;
            }
            let is_own = change.job.as_deref() == Some(&*self.job);
            let own = change.seq.filter(|_| is_own);
            let (at, change) = (change.at, (name.to_owned(), change));
            if let Some(seq) = own {
                self.own.entry(seq).or_default().push(change);
            } else {
                self.count = self.count.saturating_add(1);
                self.pending.insert((at, self.count), change);
            }
        }
        Ok(())
    }

    /// The changes to print before a record of the job: those of others up to its time, and those of the job
    /// in the commit that ends with this record.
    fn before(&mut self, seq: u64, time: Timestamp) -> Vec<EventView> {
        let later = self.pending.split_off(&(time, u64::MAX));
        let shown = std::mem::replace(&mut self.pending, later);
        let own = self.own.remove(&seq).unwrap_or_default();
        let shown = shown.into_values().chain(own);
        shown
            .filter(|(_, change)| !self.recorded.contains(&change.at))
            .filter_map(|(name, change)| view::breaker_event(&name, &change))
            .collect()
    }
}
