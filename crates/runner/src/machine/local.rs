//! The machine this process runs on.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Handle;
use undaunted_policy::Timestamp;

use super::interface::LocalKeeper;
use super::{AttemptEnds, CancelCall, KeeperAddress, Machine, ReachedKeeper};
use crate::clock::{clocks, uptime};
use crate::executor::{send, write_file};
use crate::keeper::{KeeperEvent, LaunchedKeeper, WaitingKeeper};
use crate::process::{end_all, with_receipt_token};
use crate::{
    FunctionOrder, Functions, HttpOrder, JobFolder, KeeperClient, KeeperError, NewFile, Notifier, Spool,
    SpoolError, locked,
};

#[derive(Debug, Default)]
pub struct LocalMachine {
    keeper: PathBuf,
    keeper_args: Vec<OsString>,
    functions: Option<(Functions, Handle)>,
    launched: Mutex<Option<LaunchedKeeper>>,
}

impl LocalMachine {
    /// `keeper` is the program that runs a keeper when it is called with `keeper_args` and a folder.
    pub fn with_keeper(keeper: PathBuf, keeper_args: Vec<OsString>) -> Self {
        Self { keeper, keeper_args, ..Self::default() }
    }

    pub(crate) fn with_functions(self, functions: Functions, handle: Handle) -> Self {
        Self { functions: Some((functions, handle)), ..self }
    }

    /// Gives a keeper its job, in parallel with the submission of the job. If the submission fails, the keeper exits
    /// by itself; if the keeper cannot be started, that is tried again, and reported, when it is needed.
    pub fn launch_keeper(&self, folder: &JobFolder, waiting: Option<WaitingKeeper>) {
        let start = || WaitingKeeper::start(&self.keeper, &self.keeper_args);
        let waiting = waiting.map_or_else(start, Ok);
        let launched = waiting.and_then(|waiting| waiting.begin(&folder.spool()));
        *locked(&self.launched) = launched.ok();
    }

    /// The keeper that `launch_keeper` started for this spool.
    fn launched(&self, spool: &Path) -> Option<LaunchedKeeper> {
        let launched = locked(&self.launched).take();
        launched.filter(|launched| std::path::absolute(spool).is_ok_and(|spool| launched.folder() == spool))
    }

    /// Undoes `launch_keeper`: the job was not submitted.
    pub fn cancel_launch(&self, folder: &JobFolder) {
        if let Some(launched) = self.launched(&folder.spool()) {
            launched.end();
        }
        // If this fails, an empty folder stays, which is harmless.
        drop(folder.remove());
    }
}

impl Machine for LocalMachine {
    fn uptime(&self) -> Duration {
        uptime()
    }

    fn clocks(&self) -> (Timestamp, Duration) {
        clocks()
    }

    fn run_in_background(&self, work: Box<dyn FnOnce() + Send>) {
        std::thread::spawn(work);
    }

    fn send(&self, order: HttpOrder, notifier: Notifier) -> CancelCall {
        send(order, notifier)
    }

    fn has_function(&self, name: &str) -> bool {
        let functions = self.functions.as_ref();
        functions.is_some_and(|(functions, _)| functions.has(name))
    }

    fn call(&self, order: FunctionOrder, notifier: Notifier) -> CancelCall {
        match &self.functions {
            Some((functions, runtime)) => functions.call(runtime, order, notifier),
            // Not reached: `has_function` keeps such a job from being begun.
            None => Box::new(|| {}),
        }
    }

    fn keeper(&self, reach: KeeperAddress<'_>) -> Result<ReachedKeeper, KeeperError> {
        let spool = reach.folder.spool();
        let unusable = SpoolError::unusable(reach.folder.path());
        reach.folder.make().map_err(unusable)?;
        if let Some(last) = reach.behind {
            Spool::open(&spool)?.begin_after(last).map_err(unusable)?;
        }
        let launched = self.launched(&spool);
        let endings = Arc::new(AttemptEnds::new(&reach.started));
        let (ends, notifier) = (Arc::clone(&endings), reach.notifier.clone());
        let on_events = move |spool: &Spool, events: Vec<KeeperEvent>| {
            let messages = events.into_iter().filter_map(|event| ends.message(event, spool));
            notifier.try_send(messages.collect())
        };
        let reached = KeeperClient::reach(&self.keeper, &self.keeper_args, &spool, launched, on_events);
        let (keeper, recovered) = reached?;
        keeper.set_environment(reach.env.to_vec())?;
        let tokens: BTreeSet<String> = reach.started.values().filter_map(|it| it.token.clone()).collect();
        if recovered.uncertain && !tokens.is_empty() {
            let found = with_receipt_token(&tokens).map_err(KeeperError::Processes)?;
            end_all(&found, reach.grace);
        }
        let (fates, others) = endings.fates(&reach.started, &recovered, keeper.spool(), reach.now);
        Ok(ReachedKeeper {
            keeper: Box::new(LocalKeeper { keeper, endings, notifier: reach.notifier }),
            fates,
            others,
        })
    }

    fn has_spool(&self, folder: &JobFolder) -> bool {
        folder.spool().is_dir()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn write(&self, file: &NewFile<'_>) -> io::Result<()> {
        write_file(file)
    }

    fn write_private(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        crate::folder::keep(path, bytes)
    }

    fn note_alive(&self, folder: &JobFolder) {
        folder.note_alive();
    }

    fn seen_alive(&self, folder: &JobFolder) -> Option<Timestamp> {
        folder.seen_alive()
    }
}
