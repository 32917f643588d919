//! The machine this process runs on.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::runtime::Handle;
use undaunted_engine::input::AttemptEnd;
use undaunted_policy::Timestamp;

use super::asked::{Machine, Tell, Withdraw};
use super::keeping::Keeping;
use crate::clock::{clocks, uptime, wall};
use crate::executor::{Answered, FunctionOrder, Functions, NewFile, Order, send, write_file};
use crate::folder::JobFolder;
use crate::keeper::{Keeper, KeeperError};
use crate::process::{end_all, holding};
use crate::spool::{Recovered, Spool, SpoolError};

/// The machine this process runs on.
#[derive(Clone, Debug, Default)]
pub struct Here {
    /// The program that is the keeper, if it is called with `keeper_args` and a folder.
    pub keeper: PathBuf,
    /// See `keeper`.
    pub keeper_args: Vec<OsString>,
    /// The functions that commands can name, and where they run.
    pub functions: Option<(Functions, Handle)>,
}

impl Machine for Here {
    fn uptime(&self) -> Duration {
        uptime()
    }

    fn clocks(&self) -> (Timestamp, Duration) {
        clocks()
    }

    fn aside(&self, work: Box<dyn FnOnce() + Send>) {
        std::thread::spawn(work);
    }

    fn send(&self, order: Order, tell: Box<dyn FnOnce(Answered) + Send>) -> Withdraw {
        send(order, tell)
    }

    fn has_function(&self, name: &str) -> bool {
        let functions = self.functions.as_ref();
        functions.is_some_and(|(functions, _)| functions.has(name))
    }

    fn call(&self, order: FunctionOrder, tell: Box<dyn FnOnce(AttemptEnd) + Send>) -> Withdraw {
        match &self.functions {
            Some((functions, runtime)) => functions.call(runtime, order, tell),
            // A job that names one is not begun here.
            None => Box::new(|| {}),
        }
    }

    fn keeper(
        &self,
        folder: &JobFolder,
        behind: Option<u32>,
        tell: Tell,
    ) -> Result<(Box<dyn Keeping>, Recovered), KeeperError> {
        let spool = folder.spool();
        let unusable = |source| SpoolError::Unusable {
            folder: folder.path().to_owned(),
            source,
        };
        folder.make().map_err(unusable)?;
        if let Some(last) = behind {
            let begun = Spool::open(&spool)?.begin_behind(last);
            begun.map_err(unusable)?;
        }
        let (mut keeper, recovered) = Keeper::start(&self.keeper, &self.keeper_args, &spool)?;
        let events = keeper.take_events();
        std::thread::spawn(move || {
            for event in events {
                if !tell(event) {
                    break;
                }
            }
        });
        Ok((Box::new(keeper), recovered))
    }

    fn has_spool(&self, folder: &JobFolder) -> bool {
        folder.spool().is_dir()
    }

    fn end_holders(&self, tokens: &BTreeSet<String>, grace: Duration) -> Result<(), KeeperError> {
        let found = holding(tokens).map_err(KeeperError::Processes)?;
        end_all(&found, grace);
        Ok(())
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn write(&self, file: &NewFile<'_>) -> io::Result<()> {
        write_file(file)
    }

    fn keep(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        crate::folder::keep(path, bytes)
    }

    fn note_alive(&self, folder: &JobFolder) {
        folder.note_alive();
    }

    fn seen_alive(&self, folder: &JobFolder) -> Option<Timestamp> {
        folder.seen_alive().map(wall)
    }
}
