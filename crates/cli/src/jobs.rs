//! The store on the command line: opening it, finding jobs in it, and the errors people see.

use std::env;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use undaunted_engine::breaker::AdmissionControl;
use undaunted_engine::event::{Event, JobEvent, Record};
use undaunted_engine::job::{Job, Plans};
use undaunted_policy::Timestamp;
use undaunted_runner::breakers;
use undaunted_runner::catalog::Book;
use undaunted_runner::clock::Clock;
use undaunted_runner::drive::{DriveError, World};
use undaunted_runner::endpoints::Endpoints;
use undaunted_runner::folder::{JobFolder, LocalFolder};
use undaunted_runner::journal::{self, JournalError, Known};
use undaunted_runner::machine::Here;
use undaunted_runner::{random_name, random_number, with_causes};
use undaunted_store::{AppendError, ClaimError, Listed, Location, Store, StoreError, Version};

use crate::environment::check_interval;
use crate::exit::Refused;

/// How long commands have between TERM and KILL.
const GRACE: Duration = Duration::from_secs(5);

/// Where a store is that is not open yet, and where this process keeps its files.
pub(crate) struct Place {
    location: Location,
    pub(crate) local: LocalFolder,
    machine: Arc<Here>,
}

impl Place {
    /// The store that was named, or the one everybody uses.
    pub(crate) fn named(named: Option<&Path>) -> Result<Self, Refused> {
        let homeless = || {
            let what = "neither UNDAUNTED_HOME nor HOME is set; name a folder with --store";
            Refused::Usage(what.to_owned())
        };
        let location = match named {
            Some(name) => Location::named(name),
            None => Location::named(LocalFolder::usual().ok_or_else(homeless)?.path()),
        };
        let location = location.map_err(|error| of_store(&error))?;
        let local = LocalFolder::with(&location).ok_or_else(homeless)?;
        let own = env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
        let machine = Arc::new(Here::with_keeper(own, vec!["keeper".into()]));
        Ok(Self {
            location,
            local,
            machine,
        })
    }

    /// Has the keeper of a job begin while the store is opened and the job submitted. Not in a store
    /// that is not there yet: whoever makes it sees to it that the names of its folders are on the disk.
    pub(crate) fn foresee(&self, job: &str, has_programs: bool) -> Foreseen {
        let folder = self.local.job(job);
        if has_programs && self.location.is_created() {
            self.machine.foresee(&folder);
        }
        Foreseen {
            machine: Arc::clone(&self.machine),
            folder: Some(folder),
        }
    }

    pub(crate) fn open(self) -> Result<Jobs, Refused> {
        let store = self.location.open().map_err(|error| of_store(&error))?;
        Ok(Jobs {
            store,
            location: self.location,
            local: self.local,
            machine: self.machine,
            plans: Plans::default(),
        })
    }
}

/// A job that is being put together. If it comes to nothing, nothing of it stays.
pub(crate) struct Foreseen {
    machine: Arc<Here>,
    folder: Option<JobFolder>,
}

impl Foreseen {
    /// The job is submitted now. If that fails nobody knows whether it is on the disk, so what belongs to it
    /// stays.
    pub(crate) fn submitted(mut self) {
        self.folder = None;
    }
}

impl Drop for Foreseen {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            self.machine.foresee_nothing(folder);
        }
    }
}

/// The store, open, where it is, and where this process keeps its files.
pub(crate) struct Jobs {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) location: Location,
    pub(crate) local: LocalFolder,
    /// What the jobs that were read are planned to do: a text is checked once.
    pub(crate) plans: Plans,
    machine: Arc<Here>,
}

impl Jobs {
    /// Opens the store that was named, or the one everybody uses.
    pub(crate) fn open(named: Option<&Path>) -> Result<Self, Refused> {
        Place::named(named)?.open()
    }

    /// Where jobs of this store are run.
    pub(crate) fn world(&self) -> Result<World, Refused> {
        Ok(World {
            store: Arc::clone(&self.store),
            local: self.local.clone(),
            machine: Arc::<Here>::clone(&self.machine),
            grace: GRACE,
            check_interval: check_interval()?,
            catalog: None,
            endpoints: Endpoints::default(),
            around: env::vars_os().collect(),
        })
    }

    /// The steps and flows of the store.
    pub(crate) fn book(&self) -> Result<Book, Refused> {
        Book::open(Arc::clone(&self.store)).map_err(|error| of_journal(&error))
    }

    /// The jobs whose ids begin so.
    pub(crate) fn list(&self, prefix: &str) -> Result<Vec<Listed>, Refused> {
        let listed = self.store.list(journal::FAMILY, prefix);
        listed.map_err(|error| of_store(&error))
    }

    /// The job that was meant.
    pub(crate) fn find(&self, named: &str) -> Result<String, Refused> {
        if named == "@last" {
            return self.last();
        }
        let mut found = self.list(named)?;
        // What items of flows wait for is meant only by whoever says so.
        let is_part = |job: &Listed| job.aggregate.id().contains(':');
        if !named.contains(':') && !found.iter().all(is_part) {
            found.retain(|job| !is_part(job));
        }
        let exact = found.iter().find(|job| job.aggregate.id() == named);
        match (exact, found.as_slice()) {
            (Some(job), _) => Ok(job.aggregate.id().to_owned()),
            (None, [only]) if !named.is_empty() => Ok(only.aggregate.id().to_owned()),
            (None, []) => Err(Refused::NotFound(format!(
                "there is no job `{named}`; `undaunted ls` lists those there are"
            ))),
            (None, several) => {
                let ids: Vec<_> = several.iter().map(|job| job.aggregate.id()).collect();
                Err(Refused::Usage(format!(
                    "`{named}` is the beginning of {} jobs: {}",
                    ids.len(),
                    ids.join(", ")
                )))
            }
        }
    }

    fn last(&self) -> Result<String, Refused> {
        let mut last: Option<(Timestamp, String)> = None;
        for job in self.list("")? {
            let id = job.aggregate.id();
            if id.contains(':') {
                continue;
            }
            let submitted = self.first(id)?.map(|record| record.at);
            let submitted = submitted.unwrap_or_default();
            if last.as_ref().is_none_or(|(latest, _)| submitted >= *latest) {
                last = Some((submitted, id.to_owned()));
            }
        }
        last.map(|(_, id)| id)
            .ok_or_else(|| Refused::NotFound("there is no job yet".to_owned()))
    }

    /// The submission of a job, if it can be read.
    pub(crate) fn first(&self, id: &str) -> Result<Option<Record>, Refused> {
        self.record(id, Version::default())
    }

    /// The record behind a version.
    pub(crate) fn record(&self, id: &str, after: Version) -> Result<Option<Record>, Refused> {
        let aggregate = journal::aggregate(id).map_err(|error| of_journal(&error))?;
        let records = self.store.read(&aggregate, after);
        let mut records = records.map_err(|error| of_store(&error))?;
        match records.next() {
            Some(Ok((_, bytes))) => Ok(Record::decode(&bytes).ok()),
            Some(Err(error)) => Err(of_store(&error)),
            None => Ok(None),
        }
    }

    /// A job as its journal has it.
    pub(crate) fn read(&self, id: &str) -> Result<Job, Refused> {
        Ok(self.known(id)?.job)
    }

    /// The same, to be claimed afterwards.
    pub(crate) fn known(&self, id: &str) -> Result<Known, Refused> {
        let read = Known::read(&*self.store, id, &self.plans);
        read.map_err(|error| of_journal(&error))
    }

    /// The breakers that a job uses, as they are now.
    pub(crate) fn breakers_of(&self, job: &Job) -> Result<AdmissionControl, Refused> {
        let mut breakers = AdmissionControl::of(job.plan().breakers());
        breakers.tick(Clock::set().now());
        for name in job.breakers() {
            let found = breakers::read(&*self.store, &name).map_err(|error| of_journal(&error))?;
            if let Some(journal) = found {
                breakers.meet(&name, journal);
            }
        }
        Ok(breakers)
    }

    /// Whoever runs a job now.
    pub(crate) fn owner(&self, id: &str) -> Result<Option<undaunted_store::Owner>, Refused> {
        let aggregate = journal::aggregate(id).map_err(|error| of_journal(&error))?;
        self.store
            .owner(&aggregate)
            .map_err(|error| of_store(&error))
    }
}

/// The name of the workflow in a submission.
pub(crate) fn file_of(record: &Record) -> Option<&str> {
    let Event::Job(JobEvent::Submitted(submitted)) = &record.event else {
        return None;
    };
    Some(&submitted.file)
}

pub(crate) fn of_store(error: &StoreError) -> Refused {
    Refused::Store {
        message: with_causes(error),
        help: error.help().map(str::to_owned),
    }
}

pub(crate) fn of_journal(error: &JournalError) -> Refused {
    match error {
        JournalError::NotFound { job } => Refused::NotFound(format!("there is no job `{job}`")),
        JournalError::NoBreaker { .. } => Refused::NotFound(format!(
            "{error}; `undaunted breaker ls` lists those there are"
        )),
        JournalError::Store(error) | JournalError::Claim(ClaimError::Store(error)) => {
            of_store(error)
        }
        JournalError::Append(error) => of_append(error),
        JournalError::Claim(ClaimError::OwnedBy { aggregate, owner }) => Refused::Store {
            message: format!(
                "job {} is being run by process {} on {}",
                aggregate.id(),
                owner.pid,
                owner.host
            ),
            help: Some(format!(
                "`undaunted show {0}` shows how it stands, `undaunted cancel {0}` ends it",
                aggregate.id()
            )),
        },
        JournalError::Record { .. } => Refused::Store {
            message: with_causes(error),
            help: Some(
                "everything before that record can be read with `undaunted events`; a newer \
                 release may have written it"
                    .to_owned(),
            ),
        },
        _ => Refused::Store {
            message: with_causes(error),
            help: None,
        },
    }
}

fn of_append(error: &AppendError) -> Refused {
    match error {
        AppendError::Store(error) => of_store(error),
        error => Refused::Store {
            message: format!("{error}: somebody else has taken the job over"),
            help: None,
        },
    }
}

/// Why a job could not be gone on with; what to type is always the same.
pub(crate) fn of_drive(error: &DriveError, job: &str) -> Refused {
    let refused = match error {
        DriveError::Append(error) => of_append(error),
        DriveError::Store(error) => of_store(error),
        DriveError::Journal(error) => of_journal(error),
        // Nothing here could go on with it.
        DriveError::Function { .. } => {
            return Refused::Usage(format!(
                "{error}; the program that began job {job} goes on with it"
            ));
        }
        error => Refused::Store {
            message: with_causes(error),
            help: None,
        },
    };
    let resume = format!("nothing that was recorded is lost; go on with `undaunted resume {job}`");
    match refused {
        Refused::Store { message, help } => Refused::Store {
            message,
            help: Some(match help {
                Some(help) => format!("{help}\n  {resume}"),
                None => resume,
            }),
        },
        other => other,
    }
}

/// A name for a job that nobody else has, and a seed to draw from.
pub(crate) fn name_and_seed() -> Result<(String, u64), Refused> {
    const CHARACTERS: usize = 10;
    let name = random_name().map_err(|error| no_random(&error))?;
    let id = name.get(..CHARACTERS).unwrap_or(&name);
    Ok((id.to_owned(), drawn_number()?))
}

/// A number that nobody can guess.
pub(crate) fn drawn_number() -> Result<u64, Refused> {
    random_number().map_err(|error| no_random(&error))
}

fn no_random(error: &std::io::Error) -> Refused {
    Refused::Usage(format!("the system has no random numbers: {error}"))
}
