//! Opening the store, finding jobs in it, and turning its errors into messages.

use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use undaunted_engine::breaker::AdmissionControl;
use undaunted_engine::event::Record;
use undaunted_engine::job::{Job, Plans};
use undaunted_engine::view::quoted;
use undaunted_policy::Timestamp;
use undaunted_runner::catalog::CatalogHandle;
use undaunted_runner::clock::Clock;
use undaunted_runner::drive::{DriveError, Services};
use undaunted_runner::endpoints::Endpoints;
use undaunted_runner::folder::{JobFolder, LocalFolder};
use undaunted_runner::journal::{self, ClaimedJob, JournalError, StoredJob};
use undaunted_runner::keeper::WaitingKeeper;
use undaunted_runner::machine::LocalMachine;
use undaunted_runner::request::{JobRequest, ask};
use undaunted_runner::{breakers, random_name, random_number, with_causes};
use undaunted_store::{
    AppendError, ClaimError, ListedAggregate, Location, MemoryStore, Owner, Store, StoreError, Version,
};

use crate::environment::check_interval;
use crate::screen::plain;
use crate::{CommandError, Result};

/// The time between TERM and KILL.
const GRACE: Duration = Duration::from_secs(5);

/// What a command does with the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreUse {
    /// It only reads, which creates nothing, needs no room on the disk and works in a read-only folder.
    Read,
    /// It changes jobs that exist.
    Change,
    /// It removes jobs or their data, also on a full disk.
    Remove,
    /// It adds jobs, and creates the store if there is none.
    Add,
}

/// Where the location of the store comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LocationSource {
    Flag,
    Variable,
    Default,
}

/// A store that is not open yet, and the local folder of this process.
pub(crate) struct StorePlace {
    location: Location,
    source: LocationSource,
    pub(crate) local: LocalFolder,
    machine: Arc<LocalMachine>,
}

impl StorePlace {
    /// The store at this path, or the default one.
    pub(crate) fn named(named: Option<&Path>) -> Result<Self> {
        let homeless = || {
            let what = "none of UNDAUNTED_STORE, UNDAUNTED_HOME and HOME is set; name a folder with --store";
            CommandError::Usage(what.to_owned())
        };
        if named.is_some_and(|named| named.as_os_str().is_empty()) {
            return Err(CommandError::Usage("--store is empty; name a folder, or leave it out".to_owned()));
        }
        let variable = env::var_os("UNDAUNTED_STORE").filter(|value| !value.is_empty());
        let (source, location) = match (named, variable.as_deref().map(Path::new)) {
            (Some(flag), _) => (LocationSource::Flag, Location::named(flag)),
            (None, Some(variable)) => (LocationSource::Variable, Location::named(variable)),
            (None, None) => {
                let default = LocalFolder::default_location().ok_or_else(homeless)?;
                (LocationSource::Default, Location::named(default.path()))
            }
        };
        let location = location?;
        let local = LocalFolder::with(&location).ok_or_else(homeless)?;
        let machine = Arc::new(LocalMachine::with_keeper(own_binary(), vec![KEEPER.into()]));
        Ok(Self { location, source, local, machine })
    }

    /// Begins the spool of a job and gives it to its keeper, in parallel with opening the store and submitting the
    /// job. Not if the store has to be created, because that also syncs the names of its folders.
    pub(crate) fn prepare(
        &self,
        job: &str,
        has_programs: bool,
        waiting: Option<WaitingKeeper>,
    ) -> PreparedJob {
        let folder = self.local.job(job);
        if has_programs && self.location.is_created().unwrap_or(false) {
            self.machine.launch_keeper(&folder, waiting);
        } else if let Some(waiting) = waiting {
            waiting.dismiss();
        }
        PreparedJob { machine: Arc::clone(&self.machine), folder: Some(folder) }
    }

    pub(crate) const fn location(&self) -> &Location {
        &self.location
    }

    pub(crate) fn is_created(&self) -> Result<bool> {
        Ok(self.location.is_created()?)
    }

    pub(crate) fn open(self) -> Result<Jobs> {
        self.open_for(StoreUse::Add)
    }

    pub(crate) fn open_for(self, what: StoreUse) -> Result<Jobs> {
        let opened = match what {
            StoreUse::Add => self.location.open(),
            _ if !self.is_created()? => Err(StoreError::Missing { path: self.location.to_string().into() }),
            StoreUse::Read => self.location.open_for_reading(),
            StoreUse::Remove => self.location.open_for_removing(),
            StoreUse::Change => self.location.open(),
        };
        let store: Arc<dyn Store> = match opened {
            Ok(store) => store,
            // Also while another process is still creating it.
            Err(StoreError::Missing { .. }) => self.empty_store(what)?,
            Err(error) => return Err(error.into()),
        };
        Ok(Jobs { store, local: self.local, machine: self.machine, plans: Plans::default() })
    }

    /// What a command sees where there is no store.
    fn empty_store(&self, what: StoreUse) -> Result<Arc<dyn Store>> {
        match (self.source, what) {
            // Before the first job, the default store has no jobs.
            (LocationSource::Default, _) => {}
            // A script may look before the first job is there; a person has perhaps mistyped the path.
            (_, StoreUse::Read) => {
                let (message, help) = self.missing();
                let _ = writeln!(io::stderr(), "note: {}", plain(&format!("{message}; {help}")));
            }
            (_, StoreUse::Change | StoreUse::Remove | StoreUse::Add) => {
                let (message, help) = self.missing();
                return Err(CommandError::NoStore { message, help });
            }
        }
        Ok(Arc::new(MemoryStore::new()))
    }

    /// That there is no store, and what to do about it.
    fn missing(&self) -> (String, String) {
        let path = quoted(&self.location.to_string());
        let help = match self.source {
            LocationSource::Flag => format!(
                "check the path; `undaunted run FILE --store {path}` creates a store there, and without --store \
                 the default one is used"
            ),
            LocationSource::Variable | LocationSource::Default => format!(
                "UNDAUNTED_STORE names it; correct that, name another with --store, or create it with \
                 `undaunted run FILE --store {path}`"
            ),
        };
        let missing = StoreError::Missing { path: self.location.to_string().into() };
        (missing.to_string(), help)
    }
}

/// The word that makes this binary a keeper.
pub(crate) const KEEPER: &str = "keeper";

pub(crate) fn own_binary() -> PathBuf {
    env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into())
}

/// A job before its submission. Unless it is submitted, its folder and keeper are removed on drop.
pub(crate) struct PreparedJob {
    machine: Arc<LocalMachine>,
    folder: Option<JobFolder>,
}

impl PreparedJob {
    /// Called before the job is submitted: if the submission fails, the job may still be on the disk, so its
    /// files stay.
    pub(crate) fn submitted(mut self) {
        self.folder = None;
    }
}

impl Drop for PreparedJob {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            self.machine.cancel_launch(folder);
        }
    }
}

/// The answer of [`Jobs::claim_or_ask`].
pub(crate) enum ClaimOrOwner {
    Claimed(Box<ClaimedJob>),
    Owner(Owner),
}

/// An open store, and the local folder of this process.
pub(crate) struct Jobs {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) local: LocalFolder,
    /// The plans of the jobs read so far, so that a workflow text is checked only once.
    pub(crate) plans: Plans,
    machine: Arc<LocalMachine>,
}

impl Jobs {
    pub(crate) fn open(named: Option<&Path>) -> Result<Self> {
        StorePlace::named(named)?.open()
    }

    pub(crate) fn open_for(named: Option<&Path>, what: StoreUse) -> Result<Self> {
        StorePlace::named(named)?.open_for(what)
    }

    pub(crate) fn services(&self) -> Result<Services> {
        Ok(Services {
            store: Arc::clone(&self.store),
            local: self.local.clone(),
            machine: Arc::<LocalMachine>::clone(&self.machine),
            grace: GRACE,
            check_interval: check_interval()?,
            catalog: None,
            endpoints: Endpoints::default(),
            env: env::vars_os().collect(),
        })
    }

    pub(crate) fn catalog(&self) -> Result<CatalogHandle> {
        Ok(CatalogHandle::open(Arc::clone(&self.store))?)
    }

    pub(crate) fn list(&self, prefix: &str) -> Result<Vec<ListedAggregate>> {
        Ok(self.store.list(journal::FAMILY, prefix)?)
    }

    /// Claims a job, or sends the request to the process that owns it.
    pub(crate) fn claim_or_ask(&self, id: &str, request: JobRequest) -> Result<ClaimOrOwner> {
        match journal::claim(&*self.store, id, &self.plans) {
            Ok(claimed) => Ok(ClaimOrOwner::Claimed(Box::new(claimed))),
            Err(JournalError::Claim(ClaimError::OwnedBy { owner, .. })) => {
                ask(&*self.store, id, request)?;
                Ok(ClaimOrOwner::Owner(owner))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The id of the job with this id or prefix of one, or of `@last`.
    pub(crate) fn find(&self, named: &str) -> Result<String> {
        if named == "@last" {
            return self.last();
        }
        if named.is_empty() {
            return Err(CommandError::Usage(
                "the id of the job is empty; `undaunted ls` lists all jobs".into(),
            ));
        }
        let mut found = self.list(named)?;
        // A flow started by an item of another flow has a colon in its id, and is found only by such a name.
        let is_inner = |job: &ListedAggregate| job.aggregate.id().contains(':');
        if !named.contains(':') && !found.iter().all(is_inner) {
            found.retain(|job| !is_inner(job));
        }
        let exact = found.iter().find(|job| job.aggregate.id() == named);
        match (exact, found.as_slice()) {
            (Some(job), _) => Ok(job.aggregate.id().to_owned()),
            (None, [only]) => Ok(only.aggregate.id().to_owned()),
            (None, []) => Err(CommandError::not_found(
                "no_job",
                format!("job `{named}` not found; `undaunted ls` lists all jobs"),
            )),
            (None, several) => {
                let ids: Vec<_> = several.iter().map(|job| job.aggregate.id()).collect();
                Err(CommandError::Usage(format!("`{named}` matches {} jobs: {}", ids.len(), ids.join(", "))))
            }
        }
    }

    fn last(&self) -> Result<String> {
        let mut last: Option<(Timestamp, String)> = None;
        for job in self.list("")? {
            let id = job.aggregate.id();
            if id.contains(':') {
                continue;
            }
            let submitted = self.first(id)?.map(|record| record.at).unwrap_or_default();
            if last.as_ref().is_none_or(|(latest, _)| submitted >= *latest) {
                last = Some((submitted, id.to_owned()));
            }
        }
        last.map(|(_, id)| id).ok_or_else(|| {
            CommandError::not_found("no_job", "no jobs yet; `undaunted run FILE` starts one".to_owned())
        })
    }

    /// The submission of a job, if it can be decoded.
    pub(crate) fn first(&self, id: &str) -> Result<Option<Record>> {
        self.record(id, Version::default())
    }

    pub(crate) fn record(&self, id: &str, after: Version) -> Result<Option<Record>> {
        let aggregate = journal::aggregate(id)?;
        let next = self.store.read(&aggregate, after)?.next().transpose()?;
        Ok(next.and_then(|(_, bytes)| Record::decode(&bytes).ok()))
    }

    pub(crate) fn read(&self, id: &str) -> Result<Job> {
        Ok(self.known(id)?.job)
    }

    /// Like [`Jobs::read`], for a later claim.
    pub(crate) fn known(&self, id: &str) -> Result<StoredJob> {
        Ok(StoredJob::read(&*self.store, id, &self.plans)?)
    }

    pub(crate) fn breakers_of(&self, job: &Job) -> Result<AdmissionControl> {
        let mut breakers = AdmissionControl::with_breakers(job.plan().breakers());
        breakers.tick(Clock::set().now());
        for name in job.breakers() {
            if let Some(journal) = breakers::read(&*self.store, &name)? {
                breakers.load(&name, journal);
            }
        }
        Ok(breakers)
    }

    pub(crate) fn owner(&self, id: &str) -> Result<Option<Owner>> {
        Ok(self.store.owner(&journal::aggregate(id)?)?)
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        of_store(&error)
    }
}

impl From<JournalError> for CommandError {
    fn from(error: JournalError) -> Self {
        of_journal(&error)
    }
}

fn of_store(error: &StoreError) -> CommandError {
    CommandError::Store { message: with_causes(error), help: error.help().map(str::to_owned) }
}

pub(crate) fn of_journal(error: &JournalError) -> CommandError {
    match error {
        JournalError::NotFound { job } => CommandError::not_found("no_job", format!("job `{job}` not found")),
        JournalError::NoBreaker { breaker } => CommandError::not_found(
            "no_breaker",
            format!("breaker `{breaker}` not found; `undaunted breaker ls` lists all breakers"),
        ),
        JournalError::Store(error) | JournalError::Claim(ClaimError::Store(error)) => of_store(error),
        JournalError::Append(error) => of_append(error),
        JournalError::Claim(ClaimError::OwnedBy { aggregate, owner }) => CommandError::Owned {
            message: format!("job {} is running in process {} on {}", aggregate.id(), owner.pid, owner.host),
            help: format!(
                "`undaunted show {0}` shows its status, `undaunted cancel {0}` cancels it",
                aggregate.id()
            ),
        },
        JournalError::Record { .. } => CommandError::Store {
            message: with_causes(error),
            help: Some(
                "`undaunted events` prints everything before that record; a newer release may \
                 have written it"
                    .to_owned(),
            ),
        },
        _ => CommandError::Store { message: with_causes(error), help: None },
    }
}

fn of_append(error: &AppendError) -> CommandError {
    match error {
        AppendError::Store(error) => of_store(error),
        error => {
            CommandError::Store { message: format!("{error}: another process owns the job now"), help: None }
        }
    }
}

/// Why the event loop left a job, with the command that resumes it.
pub(crate) fn of_drive(error: &DriveError, job: &str) -> CommandError {
    let refused = match error {
        DriveError::Append(error) => of_append(error),
        DriveError::Store(error) => of_store(error),
        DriveError::Journal(error) => of_journal(error),
        // This binary does not contain the functions of an embedded job.
        DriveError::Function { .. } => {
            return CommandError::Usage(format!(
                "{error}; resume job {job} with the program that started it"
            ));
        }
        error => CommandError::Store { message: with_causes(error), help: None },
    };
    let resume = format!("nothing recorded is lost; resume with `undaunted resume {job}`");
    match refused {
        CommandError::Store { message, help } => CommandError::Store {
            message,
            help: Some(match help {
                Some(help) => format!("{help}\n  {resume}"),
                None => resume,
            }),
        },
        other => other,
    }
}

pub(crate) fn name_and_seed() -> Result<(String, u64)> {
    const CHARACTERS: usize = 10;
    let name = random_name().map_err(|error| no_random(&error))?;
    let id = name.get(..CHARACTERS).unwrap_or(&name);
    Ok((id.to_owned(), drawn_number()?))
}

/// From the system's random source, so that it cannot be guessed.
pub(crate) fn drawn_number() -> Result<u64> {
    random_number().map_err(|error| no_random(&error))
}

fn no_random(error: &std::io::Error) -> CommandError {
    CommandError::Usage(format!("cannot get random numbers from the operating system: {error}"))
}
